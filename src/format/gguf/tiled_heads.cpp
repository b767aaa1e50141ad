#include "format/gguf/tiled_heads.h"

#include <cmath>

namespace tandem::format::gguf_arch {
namespace {

using Json = nlohmann::json;

/// Where each value head is in the file.
std::vector<int64_t> places_of_heads(const Json& config) {
  const auto keys = config.at("linear_num_key_heads").get<int64_t>();
  const auto values = config.at("linear_num_value_heads").get<int64_t>();
  const int64_t group = values / keys;
  std::vector<int64_t> places;
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t i = 0; i < group; ++i) places.push_back(i * keys + key);
  return places;
}

/// The last rows, those of value heads, in the order of models; those of q and k before them stay.
Result<DerivedTensor> untile_rows(DerivedTensor tensor, const Json& config, int64_t before) {
  const auto places = places_of_heads(config);
  const int64_t all = tensor.shape.empty() ? 0 : tensor.shape[0];
  const auto heads = static_cast<int64_t>(places.size());
  if (all <= before || (all - before) % heads != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("it has {} rows, which are not of {} heads", all, heads)};
  const int64_t width = (all - before) / heads;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < before; ++i) rows.push_back(i);
  for (const int64_t place : places)
    for (int64_t i = 0; i < width; ++i) rows.push_back(before + place * width + i);
  return with_rows(std::move(tensor), std::move(rows));
}

Result<DerivedTensor> untiled(DerivedTensor tensor, const Json& config) {
  return untile_rows(std::move(tensor), config, 0);
}

Result<DerivedTensor> untiled_after_keys(DerivedTensor tensor, const Json& config) {
  const auto keys = config.at("linear_num_key_heads").get<int64_t>() *
                    config.at("linear_key_head_dim").get<int64_t>();
  return untile_rows(std::move(tensor), config, 2 * keys);
}

Result<DerivedTensor> untiled_taps(DerivedTensor tensor, const Json& config) {
  auto taps = untiled_after_keys(std::move(tensor), config);
  return taps ? with_last_axis(*std::move(taps), config) : taps;
}

Result<DerivedTensor> untiled_logarithm(DerivedTensor tensor, const Json& config) {
  auto decays = untiled(std::move(tensor), config);
  return decays ? as_logarithm(*std::move(decays), config) : decays;
}

Result<DerivedTensor> untiled_inputs(DerivedTensor tensor, const Json& config) {
  return with_columns(std::move(tensor), places_of_heads(config));
}

}  // namespace

std::vector<GgufConversion> untiled_heads() {
  return {{"linear_attn.in_proj_qkv", untiled_after_keys},
          {"linear_attn.in_proj_z", untiled},
          {"linear_attn.in_proj_b", untiled},
          {"linear_attn.in_proj_a", untiled},
          {"linear_attn.conv1d", untiled_taps},
          {"linear_attn.dt_bias", untiled},
          {"linear_attn.A_log", untiled_logarithm},
          {"linear_attn.out_proj", untiled_inputs}};
}

}  // namespace tandem::format::gguf_arch
