#include "tensor/expert_weights.h"

#include <algorithm>
#include <cmath>

#include "tensor/dtype.h"

namespace tandem::tensor {

namespace {

/// Expert [1, ...] of several without its first axis.
format::Tensor alone(format::Tensor one, const std::string& name) {
  if (one.shape.size() != 3)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{} should have three axes", name)});
  one.shape.erase(one.shape.begin());
  return one;
}

}  // namespace

ExpertWeights::ExpertWeights(const Weights& module,
                             const char* name,
                             uint32_t outputs,
                             uint32_t inputs)
    : module_(module), name_(name), outputs_(outputs), inputs_(inputs) {
  const std::string_view named = name;
  const char* numbered = named == "up_proj" ? "fc1" : named == "down_proj" ? "fc2" : name;
  for (const char* place : {"switch_mlp", "experts", "experts.switch_glu", "moe"})
    for (const char* leaf : {name, numbered})
      if (Weights stack = module / place / leaf; stack.has("weight")) stack_ = std::move(stack);
}

Weights ExpertWeights::at(uint32_t index) const {
  if (stack_) return *stack_;
  const Weights one = module_ / "experts" / index;
  const std::string_view name = name_;
  const char* short_name = name == "gate_proj" ? "w1" : name == "up_proj" ? "w3" : "w2";
  return (one / short_name).has("weight") ? one / short_name : one / name_;
}

format::Tensor ExpertWeights::load(const char* leaf, uint32_t index) const {
  const Weights from = at(index);
  if (!stack_) return from.raw(leaf);
  return alone(from.raw(leaf, topology::Range{index, index + 1}),
               fmt::format("{}.{}", from.path(), leaf));
}

MappedMatrix ExpertWeights::map(uint32_t index) const {
  const Weights from = at(index);
  MappedMatrix out{.name = from.path(),
                   .weight = load("weight", index),
                   .quantization = from.quantization(),
                   .is_in_float32 = from.is_in_float32()};
  if (out.weight.shape.size() != 2 || out.outputs() != outputs_ || out.inputs() != inputs_)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: an expert is not [{}, {}]",
                                                        from.path(), outputs_, inputs_)});
  if (out.quantization) out.scales = load("scales", index);
  if (out.has_biases()) out.biases = load("biases", index);
  if (const Status fits = check_layout(out); !fits) throw LoadFailure(fits.error());
  return out;
}

std::vector<float> ExpertWeights::bias(uint32_t experts, topology::Range rows) const {
  std::vector<float> out;
  if (!at(0).has("bias")) return out;
  if (!stack_) {
    for (uint32_t e = 0; e < experts; ++e) {
      const auto one = at(e).vector("bias", rows);
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  }
  const format::Tensor all = stack_->raw("bias");
  if (all.shape != std::vector<int64_t>{experts, outputs_})
    throw LoadFailure({ErrorCode::kCorrupt,
                       fmt::format("{}.bias is not [{}, {}]", stack_->path(), experts, outputs_)});
  for (uint32_t e = 0; e < experts; ++e)
    for (uint32_t row = rows.begin; row < rows.end; ++row)
      out.push_back(kernels::load_scalar(all.bytes.data(), scalar_type(all.dtype),
                                         size_t{e} * outputs_ + row));
  if (!std::ranges::all_of(out, [](float x) { return std::isfinite(x); }))
    throw LoadFailure({ErrorCode::kCorrupt,
                       fmt::format("{}.bias holds a number that is NaN or infinite: the file is "
                                   "damaged, fetch or convert the model again",
                                   stack_->path())});
  stack_->count_bytes(out.size() * sizeof(float));
  return out;
}

void require_alike(const Weights& where, const MappedMatrix& a, const MappedMatrix& b) {
  if (!a.is_like(b))
    throw LoadFailure(
        {ErrorCode::kUnsupported,
         fmt::format("{}: experts of several formats are not supported", where.path())});
}

}  // namespace tandem::tensor
