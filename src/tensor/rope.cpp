#include "tensor/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::tensor {
namespace {

constexpr double kTau = 2 * std::numbers::pi;

/// Keeps short wavelengths, stretches long ones by the factor, and blends between.
double llama3(const RopeSpec& s, double inverse) {
  const double turns = s.original_context * inverse / kTau;  // over the original context
  if (turns < s.low_freq_factor) return inverse / s.factor;
  if (turns > s.high_freq_factor) return inverse;
  const double keep = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return inverse * (keep + (1 - keep) / s.factor);
}

/// The (fractional) pair that makes `turns` turns over the original context.
double pair_of_turns(const RopeSpec& s, double turns) {
  return s.dims * std::log(s.original_context / (turns * kTau)) / (2 * std::log(s.base));
}

double yarn(const RopeSpec& s, uint32_t pair, double inverse) {
  const double first = pair_of_turns(s, s.beta_fast), last = pair_of_turns(s, s.beta_slow);
  const double low = std::max(s.truncates ? std::floor(first) : first, 0.0);
  double high = std::min(s.truncates ? std::ceil(last) : last, s.dims - 1.0);
  if (high == low) high += 0.001;
  const double stretch = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return inverse * (stretch / s.factor + (1 - stretch));
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1;
}

double inverse_frequency(const RopeSpec& s, uint32_t pair) {
  const double inverse = std::pow(s.base, -2.0 * pair / s.dims);
  switch (s.kind) {
    case RopeSpec::Kind::kLinear:
      return inverse / s.factor;
    case RopeSpec::Kind::kLlama3:
      return llama3(s, inverse);
    case RopeSpec::Kind::kYarn:
      return yarn(s, pair, inverse);
    case RopeSpec::Kind::kFactors:
      return inverse / s.factors[pair];
    case RopeSpec::Kind::kProportional:
      return 2 * pair < s.turning_dims ? inverse / s.factor : 0;
    case RopeSpec::Kind::kDefault:
      break;
  }
  return inverse;
}

}  // namespace

Rope make_rope(const RopeSpec& spec) {
  Rope rope{.inverse_frequencies = {}, .scale = 1, .interleaved = spec.interleaved};
  for (uint32_t pair = 0; pair < spec.dims / 2; ++pair)
    rope.inverse_frequencies.push_back(static_cast<float>(inverse_frequency(spec, pair)));
  if (spec.kind == RopeSpec::Kind::kFactors && spec.attention_factor != 0)
    rope.scale = static_cast<float>(spec.attention_factor);
  if (spec.kind == RopeSpec::Kind::kYarn) {
    const double from_factor =
        yarn_magnitude(spec.factor, spec.mscale) / yarn_magnitude(spec.factor, spec.mscale_all_dim);
    rope.scale =
        static_cast<float>(spec.attention_factor != 0 ? spec.attention_factor : from_factor);
  }
  return rope;
}

}  // namespace tandem::tensor
