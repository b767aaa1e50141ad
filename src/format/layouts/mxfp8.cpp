#include "format/layouts/mxfp8.h"

namespace tandem::format {
namespace {

constexpr int64_t kGroup = 32, kCodesOfWord = 4;

/// These bytes as other elements.
Result<Tensor> seen_as(
    const Checkpoint& from, const std::string& name, RowRange rows, Dtype dtype, int64_t columns) {
  auto out = from.tensor(name, rows);
  if (!out) return out;
  out->dtype = dtype;
  out->shape.back() = columns;
  return out;
}

void add_view(const Checkpoint& from,
              const std::string& name,
              const std::string& as,
              const Tensor& seen,
              Derivations& derivations) {
  derivations.tensors[as] = {
      .dtype = seen.dtype,
      .shape = seen.shape,
      .make = [&from, name, dtype = seen.dtype, columns = seen.shape.back()](RowRange rows) {
        return seen_as(from, name, rows, dtype, columns);
      }};
}

}  // namespace

Status add_mxfp8(const Checkpoint& from, Derivations& derivations) {
  constexpr std::string_view kWeight = ".weight";
  for (const std::string& name : from.names()) {
    const std::string scale = name + "_scale_inv";
    if (!name.ends_with(kWeight) || !from.has(scale)) continue;
    const auto weight = from.describe(name), scales = from.describe(scale);
    if (!weight || !scales) return weight ? scales.error() : weight.error();
    const bool is_of_bytes = scales->dtype == Dtype::kU8 || scales->dtype == Dtype::kF8E8M0;
    if (weight->dtype != Dtype::kF8E4M3 || !is_of_bytes) continue;
    std::vector<int64_t> groups = weight->shape;
    if (!groups.empty()) groups.back() /= kGroup;
    const bool is_whole = !groups.empty() && weight->shape.back() % kGroup == 0;
    if (!is_whole || scales->shape != groups) continue;
    const std::string module = name.substr(0, name.size() - kWeight.size());
    Tensor words{Dtype::kU32, weight->shape, {}, nullptr};
    words.shape.back() /= kCodesOfWord;
    add_view(from, name, name, words, derivations);
    add_view(from, scale, module + ".scales", {Dtype::kU8, groups, {}, nullptr}, derivations);
    derivations.hidden.insert(scale);
    derivations.quantizations[module] = {
        .bits = 8, .group_size = static_cast<int>(kGroup), .mode = QuantMode::kMxfp8};
  }
  return {};
}

}  // namespace tandem::format
