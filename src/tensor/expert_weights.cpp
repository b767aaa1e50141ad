#include "tensor/expert_weights.h"

namespace tandem::tensor {

Weights ExpertWeights::at(uint32_t index) const {
  if (is_stacked_) return module_ / "switch_mlp" / name_;
  const Weights one = module_ / "experts" / index;
  const std::string_view name = name_;
  const char* short_name = name == "gate_proj" ? "w1" : name == "up_proj" ? "w3" : "w2";
  return (one / short_name).has("weight") ? one / short_name : one / name_;
}

format::Tensor ExpertWeights::load(const char* leaf, uint32_t index) const {
  const Weights from = at(index);
  if (!is_stacked_) return from.raw(leaf);
  format::Tensor one = from.raw(leaf, topology::Range{index, index + 1});
  if (one.shape.size() != 3)
    throw LoadFailure(
        {ErrorCode::kCorrupt, fmt::format("{}.{} should have three axes", from.path(), leaf)});
  one.shape.erase(one.shape.begin());
  return one;
}

MappedMatrix ExpertWeights::map(uint32_t index) const {
  const Weights from = at(index);
  MappedMatrix out{
      .name = from.path(), .weight = load("weight", index), .quantization = from.quantization()};
  if (out.weight.shape.size() != 2 || out.outputs() != outputs_ || out.inputs() != inputs_)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: an expert is not [{}, {}]",
                                                        from.path(), outputs_, inputs_)});
  if (out.quantization) {
    out.scales = load("scales", index);
    out.biases = load("biases", index);
  }
  if (const Status fits = check_layout(out); !fits) throw LoadFailure(fits.error());
  return out;
}

void require_alike(const Weights& where, const MappedMatrix& a, const MappedMatrix& b) {
  if (!a.is_like(b))
    throw LoadFailure(
        {ErrorCode::kUnsupported,
         fmt::format("{}: experts of several formats are not supported", where.path())});
}

}  // namespace tandem::tensor
