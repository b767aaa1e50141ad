// The reference's results, and where they and the checkpoints lie.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/safetensors.h"

namespace tandem {

inline std::filesystem::path checkpoints_folder, logits_folder;  // set by main()
inline std::string only_checkpoints;  // how the names of those that count begin; set by main()

inline constexpr std::array kModels = {"bailing_hybrid",
                                       "bailing_hybrid_bias",
                                       "deepseek_v2",
                                       "deepseek_v2_lite",
                                       "deepseek_v3",
                                       "deepseek_v32",
                                       "deepseek_v3_kv_b",
                                       "exaone_moe",
                                       "gemma2",
                                       "gemma3",
                                       "gemma3_text",
                                       "gemma4",
                                       "gemma4_moe",
                                       "gemma4_shared",
                                       "gemma4_text",
                                       "glm4_moe",
                                       "glm4_moe_lite",
                                       "glm_moe_dsa",
                                       "gpt_oss",
                                       "kimi_k25",
                                       "kimi_linear",
                                       "kimi_linear_groups",
                                       "lfm2",
                                       "lfm2_bias",
                                       "lfm2_moe",
                                       "llama",
                                       "llama_swa",
                                       "llama_tied_bias",
                                       "longcat_flash",
                                       "mamba2",
                                       "mamba2_groups",
                                       "mimo",
                                       "mimo_v2_flash",
                                       "minimax",
                                       "minimax_m3",
                                       "minimax_m3_flat",
                                       "ministral3",
                                       "mistral",
                                       "mistral4",
                                       "mixtral",
                                       "nemotron_h",
                                       "nemotron_h_dense",
                                       "nemotron_h_latent",
                                       "phi3",
                                       "qwen2",
                                       "qwen2_moe",
                                       "qwen3",
                                       "qwen3_5",
                                       "qwen3_5_moe",
                                       "qwen3_moe",
                                       "qwen3_next",
                                       "qwen3_untied",
                                       "seed_oss",
                                       "smollm3",
                                       "step3p5",
                                       "step3p5_published"};
/// Those that are also there as they were released, in float32.
inline constexpr std::array kUpstream = {"bailing_hybrid", "kimi_linear", "longcat_flash",
                                         "mamba2",         "nemotron_h",  "nemotron_h_latent",
                                         "qwen3_5",        "qwen3_5_moe", "qwen3_next"};
inline constexpr std::array kVariants = {"f32", "g64", "g32"};
/// Models as their publishers lay them out (layouts.py).
inline constexpr std::array kLayouts = {"llama-awq", "mimo_v2_flash-fp8", "minimax-fp8",
                                        "minimax_m3-mxfp8", "qwen3_moe-stacked"};

/// Models that are also there as GGUF files (gguf_files.py), in F32 and with matrices in Q8_0.
inline constexpr std::array kGguf = {"deepseek_v2",
                                     "deepseek_v2_lite",
                                     "deepseek_v3",
                                     "deepseek_v32",
                                     "deepseek_v3_kv_b",
                                     "exaone_moe",
                                     "gemma2",
                                     "gemma3_text",
                                     "gemma4_moe",
                                     "gemma4_shared",
                                     "gemma4_text",
                                     "glm4_moe",
                                     "glm4_moe_lite",
                                     "glm_moe_dsa",
                                     "lfm2",
                                     "lfm2_moe",
                                     "llama",
                                     "llama_tied_bias",
                                     "minimax",
                                     "ministral3",
                                     "mistral",
                                     "mixtral",
                                     "phi3",
                                     "qwen2",
                                     "qwen2_moe",
                                     "qwen3",
                                     "qwen3_5",
                                     "qwen3_5_moe",
                                     "qwen3_moe",
                                     "qwen3_next",
                                     "seed_oss",
                                     "smollm3"};

/// Families that are there in micro-scaled formats, too; the last as published, in mxfp4 alone.
inline constexpr std::array kMicroScaled = {"gpt_oss", "llama", "qwen3_moe"};
inline constexpr std::array kModes = {"mxfp4", "mxfp8", "nvfp4"};
inline constexpr const char* kReleased = "gpt_oss_release";

/// (model, variant) of all checkpoints.
inline std::vector<std::pair<std::string, std::string>> all_checkpoints() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* model : kModels)
    for (const char* variant : kVariants) out.emplace_back(model, variant);
  for (const char* model : kMicroScaled)
    for (const char* mode : kModes) out.emplace_back(model, mode);
  out.emplace_back(kReleased, "mxfp4");
  return out;
}

using Tokens = std::vector<int32_t>;
using Logits = std::vector<float>;

/// The reference's results for one checkpoint.
class Golden {
 public:
  explicit Golden(const std::string& name) {
    auto file = format::MappedFile::open(logits_folder / (name + ".safetensors"));
    REQUIRE(file.has_value());
    auto header = format::read_safetensors_header(*file);
    REQUIRE(header.has_value());
    for (const auto& [key, entry] : *header) {
      auto mapping = file->map(entry.offset, entry.bytes);
      REQUIRE(mapping.has_value());
      entries_[key].assign(mapping->bytes.begin(), mapping->bytes.end());
    }
  }

  Tokens tokens(const std::string& key) const { return values<int32_t>(key); }
  Logits logits(const std::string& key) const { return values<float>(key); }

 private:
  template <class T>
  std::vector<T> values(const std::string& key) const {
    const auto& bytes = entries_.at(key);
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  std::map<std::string, std::vector<std::byte>> entries_;
};

/// Largest difference of a logit, by the variant of a checkpoint.
inline float tolerance_of(std::string_view variant) { return variant == "f32" ? 2e-4F : 5e-4F; }

}  // namespace tandem
