// Qwen3-Next: b and a of a key head's value heads lie together.
#include "format/gguf/delta.h"

namespace tandem::format::gguf_arch {
namespace {

using Json = nlohmann::json;

/// Rows of b, or of a: of each key head first those of b, then those of a.
Result<DerivedTensor> half_of_each_head(DerivedTensor both, const Json& config, int64_t half) {
  const auto heads = config.at("linear_num_key_heads").get<int64_t>();
  const int64_t all = both.shape.empty() ? 0 : both.shape[0];
  const int64_t group = all / heads / 2;
  std::vector<int64_t> rows;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < group; ++i) rows.push_back((2 * head + half) * group + i);
  return with_rows(std::move(both), std::move(rows));
}

Result<DerivedTensor> b_of_heads(DerivedTensor both, const Json& config) {
  return half_of_each_head(std::move(both), config, 0);
}

Result<DerivedTensor> a_of_heads(DerivedTensor both, const Json& config) {
  return half_of_each_head(std::move(both), config, 1);
}

}  // namespace

GgufArchitecture qwen3next() {
  GgufArchitecture out = delta_architecture("qwen3next", "qwen3_next");
  out.names.push_back({"ssm_ba", "linear_attn.in_proj_ba"});
  out.conversions = {{"linear_attn.A_log", as_logarithm},
                     {"linear_attn.conv1d", with_last_axis},
                     {"linear_attn.in_proj_ba", b_of_heads, "linear_attn.in_proj_b"},
                     {"linear_attn.in_proj_ba", a_of_heads, "linear_attn.in_proj_a"}};
  add_delta_experts(out);
  return out;
}

}  // namespace tandem::format::gguf_arch
