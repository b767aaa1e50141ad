#include "tensor/gated_delta.h"

#include "kernels/gated_delta.h"

namespace tandem::tensor {
namespace {

/// A layer's rule with its arguments bound; rows are the step's of the moment.
struct BoundDelta {
  kernels::GatedDeltaArgs args;
  const Step& step;
  std::shared_ptr<kernels::WorkerPool> workers;
  std::shared_ptr<const DeltaParameters> parameters;  // that args points to

  void operator()() const {
    kernels::GatedDeltaArgs with_rows = args;
    with_rows.rows = step.state_rows();
    kernels::gated_delta(*workers, with_rows);
  }
};

}  // namespace

DeltaHeads DeltaShape::heads_in(topology::Range columns) const {
  const topology::Range heads = {columns.begin / value_dim, columns.end / value_dim};
  if (heads.empty()) return {};
  return {.key_heads = {heads.begin / group(), (heads.end - 1) / group() + 1},
          .value_heads = heads};
}

DeltaShape DeltaShape::with(const DeltaHeads& heads) const {
  DeltaShape out = *this;
  out.key_heads = heads.key_heads.size();
  out.value_heads = heads.value_heads.size();
  return out;
}

GatedDelta::GatedDelta(const Weights& module, const DeltaShape& shape, topology::Range value_heads)
    : GatedDelta(module.context(),
                 shape,
                 {.a_log = module.vector("A_log", value_heads),
                  .dt_bias = module.vector("dt_bias",
                                           topology::Range{value_heads.begin * shape.decays(),
                                                           value_heads.end * shape.decays()}),
                  .skip = shape.form == DeltaForm::kSsd ? module.vector("D", value_heads)
                                                        : std::vector<float>()}) {}

GatedDelta::GatedDelta(const Context& context, const DeltaShape& shape, DeltaParameters parameters)
    : context_(context),
      shape_(shape),
      parameters_(std::make_shared<const DeltaParameters>(std::move(parameters))) {}

array GatedDelta::operator()(StatePool& pool,
                             StatePart part,
                             const DeltaInputs& in,
                             const Step& step) const {
  const bool is_ssd = shape_.form == DeltaForm::kSsd;
  const int decays = static_cast<int>(shape_.value_heads * shape_.decays());
  const bool fits = in.a ? in.a->shape(1) == decays : is_ssd;
  if (in.qkv.shape(1) != static_cast<int>(shape_.qkv()) || part.floats != state_floats() || !fits ||
      in.b.has_value() == is_ssd)
    throw std::invalid_argument(
        fmt::format("[gated_delta] {} columns and a state of {} floats do not fit heads of {} "
                    "columns and {} floats",
                    in.qkv.shape(1), part.floats, shape_.qkv(), state_floats()));
  return context_.is_fast() ? run_fast(pool, part, in, step) : run_plain(pool, part, in, step);
}

array GatedDelta::run_fast(StatePool& pool,
                           StatePart part,
                           const DeltaInputs& inputs,
                           const Step& step) const {
  const auto bind = [&step, shape = shape_, parameters = parameters_, workers = context_.workers,
                     has_a = inputs.a.has_value(), has_b = inputs.b.has_value()](
                        const std::vector<array>& in, float* out, BoundStates states) -> CpuCall {
    const float* q = in[0].data<float>();
    const size_t stride = row_stride(in[0]);
    return BoundDelta{.args = {.q = q,
                               .k = q + shape.keys(),
                               .v = q + 2 * shape.keys(),
                               .a = has_a ? in[1].data<float>() : nullptr,
                               .b = has_b ? in[2].data<float>() : nullptr,
                               .q_stride = stride,
                               .k_stride = stride,
                               .v_stride = stride,
                               .a_stride = has_a ? row_stride(in[1]) : 0,
                               .b_stride = has_b ? row_stride(in[2]) : 0,
                               .a_log = parameters->a_log.data(),
                               .dt_bias = parameters->dt_bias.data(),
                               .skip = parameters->skip.data(),
                               .least_dt = shape.least_dt,
                               .most_dt = shape.most_dt,
                               .form = shape.form,
                               .key_heads = shape.key_heads,
                               .value_heads = shape.value_heads,
                               .key_dim = shape.key_dim,
                               .value_dim = shape.value_dim,
                               .states = states.first,
                               .state_stride = states.stride,
                               .out = out},
                      .step = step,
                      .workers = workers,
                      .parameters = parameters};
  };
  const mx::Shape shape = {inputs.qkv.shape(0), static_cast<int>(shape_.values())};
  std::vector<array> nodes = {inputs.qkv};
  if (inputs.a) nodes.push_back(*inputs.a);
  if (inputs.b) nodes.push_back(*inputs.b);
  return state_op("GatedDelta", shape, pool, part, std::move(nodes), bind);
}

}  // namespace tandem::tensor
