// Rotary position embedding: frequencies of each kind, and the angles of a step.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::tensor {

/// How inverse frequencies are made from a configuration.
struct RopeSpec {
  enum class Kind : uint8_t { kDefault, kLinear, kLlama3, kYarn, kFactors, kProportional };
  Kind kind = Kind::kDefault;
  uint32_t dims = 0;  // rotated values of a head, even
  double base = 10000;
  bool interleaved = false;  // pairs are (2i, 2i + 1) instead of (i, i + dims / 2)
  double factor = 1;
  double original_context = 0;            // llama3, yarn
  double low_freq_factor = 1;             // llama3
  double high_freq_factor = 4;            // llama3
  double beta_fast = 32, beta_slow = 1;   // yarn
  bool truncates = true;                  // yarn: blends between whole pairs
  double mscale = 1, mscale_all_dim = 0;  // yarn
  double attention_factor = 0;            // yarn, factors; 0: from factor and mscale, and 1
  std::vector<double> factors = {};       // factors: a divisor of each frequency, [dims / 2]
  uint32_t turning_dims = 0;              // proportional: the pairs of the others stand still
};

struct Rope {
  std::vector<float> inverse_frequencies;  // [dims / 2]
  float scale = 1;                         // multiplies the rotated values
  bool interleaved = false;
};

/// Requires as many factors as pairs for kFactors.
Rope make_rope(const RopeSpec& spec);

/// [tokens, pairs] row-major.
struct RopeTable {
  std::vector<float> cosine;
  std::vector<float> sine;
};

}  // namespace tandem::tensor
