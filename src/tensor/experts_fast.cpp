// The CPU fast path of Experts.
#include "kernels/activation.h"
#include "kernels/expert_choice.h"
#include "kernels/grouped_matmul.h"
#include "tensor/expert_weights.h"
#include "tensor/experts.h"

namespace tandem::tensor {

using topology::Range;

namespace {

using Mapped = std::vector<MappedMatrix>;  // of one expert

/// One matrix for each expert, by all workers, counted as bytes of `where`.
std::vector<kernels::PackedMatrix> pack_all(const Weights& where,
                                            const std::vector<Mapped>& experts,
                                            kernels::Slice rows,
                                            kernels::Slice columns) {
  std::vector<std::optional<Result<kernels::PackedMatrix>>> packed(experts.size());
  where.context().workers->parallel_for(experts.size(), [&](size_t begin, size_t end) {
    for (size_t e = begin; e < end; ++e) packed[e] = pack_here(experts[e], rows, columns);
  });
  std::vector<kernels::PackedMatrix> out;
  for (auto& each : packed) out.push_back(packed_or_throw(where, *std::move(each)));
  return out;
}

/// Of each expert those of gate, then those of up.
std::vector<float> interleaved(const std::vector<float>& gate,
                               const std::vector<float>& up,
                               size_t columns) {
  std::vector<float> out;
  for (size_t at = 0; at < gate.size(); at += columns)
    for (const auto* each : {&gate, &up}) {
      const auto begin = each->begin() + static_cast<ptrdiff_t>(at);
      out.insert(out.end(), begin, begin + static_cast<ptrdiff_t>(columns));
    }
  return out;
}

}  // namespace

void Experts::load_packed(const Weights& module, Range columns) {
  const ExpertWeights gate(module, "gate_proj", shape_.width, shape_.hidden);
  const ExpertWeights up(module, "up_proj", shape_.width, shape_.hidden);
  const ExpertWeights down(module, "down_proj", shape_.hidden, shape_.width);
  std::vector<Mapped> inner, outer;
  for (uint32_t e = 0; e < shape_.experts; ++e) {
    inner.push_back({gate.map(e), up.map(e)});
    outer.push_back({down.map(e)});
    require_alike(gate.at(e), inner[e][0], inner[0][0]);
    require_alike(up.at(e), inner[e][1], inner[0][0]);
    require_alike(down.at(e), outer[e][0], outer[0][0]);
  }
  const kernels::Slice own = {columns.begin, columns.end};
  auto packed = std::make_shared<Packed>();
  packed->gate_up = pack_all(gate.at(0), inner, own, {});
  packed->down = pack_all(down.at(0), outer, {}, own);
  packed->gate_up_bias = interleaved(gate.bias(shape_.experts, columns),
                                     up.bias(shape_.experts, columns), columns.size());
  packed->down_bias = down.bias(shape_.experts, down_bias_of(columns));
  packed_ = std::move(packed);
}

/// The experts of a step with their arguments bound; which token takes which is of the moment.
struct Experts::Bound {
  std::shared_ptr<kernels::WorkerPool> workers;
  std::shared_ptr<const Packed> packed;
  std::shared_ptr<const std::vector<float>> bias;
  ExpertsShape shape;
  size_t columns;
  const float* x;
  size_t x_stride;
  kernels::ExpertChoiceArgs choice;
  float* inner;  // [tokens * top_k, 2 * columns]
  float* each;   // [tokens * top_k, hidden]
  float* out;

  static const float* bias_or_null(const std::vector<float>& bias) {
    return bias.empty() ? nullptr : bias.data();
  }

  void operator()() const {
    kernels::choose_experts(*workers, choice);
    const size_t assignments = choice.rows * shape.top_k;
    const kernels::ExpertRows groups =
        kernels::group_by_expert({choice.ids, assignments}, shape.top_k, shape.experts);
    kernels::moe_matmul(*workers, packed->gate_up,
                        {.x = x,
                         .x_stride = x_stride,
                         .offsets = groups.offsets,
                         .x_rows = groups.rows.data(),
                         .y = inner,
                         .bias = bias_or_null(packed->gate_up_bias)});
    gated_kernel(shape.gate)(*workers, {.gate = inner,
                                        .up = inner + columns,
                                        .out = inner,
                                        .rows = assignments,
                                        .width = columns,
                                        .gate_stride = 2 * columns,
                                        .up_stride = 2 * columns,
                                        .out_stride = 2 * columns});
    kernels::moe_matmul(*workers, packed->down,
                        {.x = inner,
                         .x_stride = 2 * columns,
                         .offsets = groups.offsets,
                         .y = each,
                         .bias = bias_or_null(packed->down_bias)});
    kernels::combine_experts(*workers, {.y = each,
                                        .places = groups.places.data(),
                                        .weights = choice.weights,
                                        .rows = choice.rows,
                                        .top_k = shape.top_k,
                                        .width = shape.hidden,
                                        .out = out});
  }
};

array Experts::run_fast(const array& x, const array& logits) const {
  const auto bind = [packed = packed_, workers = context_.workers, shape = shape_,
                     columns = size_t{columns_}, bias = bias_](const std::vector<array>& in,
                                                               std::vector<array>& out) -> CpuCall {
    for (array& each : out) allocate(each);
    return Bound{.workers = workers,
                 .packed = packed,
                 .bias = bias,
                 .shape = shape,
                 .columns = columns,
                 .x = in[0].data<float>(),
                 .x_stride = row_stride(in[0]),
                 .choice = {.logits = in[1].data<float>(),
                            .rows = static_cast<size_t>(in[1].shape(0)),
                            .experts = shape.experts,
                            .top_k = shape.top_k,
                            .routing = shape.routing,
                            .bias = bias->empty() ? nullptr : bias->data(),
                            .logits_stride = row_stride(in[1]),
                            .ids = out[4].data<uint32_t>(),
                            .weights = out[3].data<float>()},
                 .inner = out[1].data<float>(),
                 .each = out[2].data<float>(),
                 .out = out[0].data<float>()};
  };
  const int tokens = x.shape(0), top_k = static_cast<int>(shape_.top_k);
  const int hidden = static_cast<int>(shape_.hidden), columns = static_cast<int>(columns_);
  // All but the first output are the node's own memory.
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), "Experts", bind);
  return array::make_arrays({{tokens, hidden},
                             {tokens * top_k, 2 * columns},
                             {tokens * top_k, hidden},
                             {tokens, top_k},
                             {tokens, top_k}},
                            {mx::float32, mx::float32, mx::float32, mx::float32, mx::uint32}, op,
                            {x, logits})
      .front();
}

}  // namespace tandem::tensor
