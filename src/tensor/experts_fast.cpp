// The CPU fast path of Experts.
#include <algorithm>

#include "kernels/activation.h"
#include "kernels/expert_choice.h"
#include "kernels/grouped_matmul.h"
#include "tensor/expert_weights.h"
#include "tensor/experts.h"

namespace tandem::tensor {

using topology::Range;

namespace {

using Mapped = std::vector<MappedMatrix>;  // of one expert

/// Of each expert those of gate, then those of up. `gate` may be empty.
std::vector<float> interleaved(const std::vector<float>& gate,
                               const std::vector<float>& up,
                               size_t columns) {
  std::vector<float> out;
  for (size_t at = 0; at < up.size(); at += columns)
    for (const auto* each : {&gate, &up}) {
      if (each->empty()) continue;
      const auto begin = each->begin() + static_cast<ptrdiff_t>(at);
      out.insert(out.end(), begin, begin + static_cast<ptrdiff_t>(columns));
    }
  return out;
}

}  // namespace

void Experts::load_packed(const Weights& module, Range columns) {
  std::optional<ExpertWeights> gate;
  if (shape_.has_gate) gate.emplace(module, "gate_proj", shape_.width, shape_.hidden);
  const ExpertWeights up(module, "up_proj", shape_.width, shape_.hidden);
  const ExpertWeights down(module, "down_proj", shape_.hidden, shape_.width);
  const MappedMatrix first = (gate ? *gate : up).map(0);
  const auto map = [&first](const ExpertWeights& from, uint32_t e) {
    MappedMatrix m = from.map(e);
    require_alike(from.at(e), m, first);
    return m;
  };
  const kernels::Slice own = {columns.begin, columns.end};
  auto packed = std::make_shared<Packed>();
  packed->gate_up = pack_all(
      up.at(0), shape_.experts,
      [&](uint32_t e) { return gate ? Mapped{map(*gate, e), map(up, e)} : Mapped{map(up, e)}; },
      own, {});
  packed->down = pack_all(
      down.at(0), shape_.experts, [&](uint32_t e) { return Mapped{map(down, e)}; }, {}, own);
  packed->gate_up_bias =
      interleaved(gate ? gate->bias(shape_.experts, columns) : std::vector<float>(),
                  up.bias(shape_.experts, columns), columns.size());
  packed->down_bias = down.bias(shape_.experts, down_bias_of(columns));
  packed_ = std::move(packed);
}

/// The experts of a step with their arguments bound; which token takes which is of the moment.
struct Experts::Bound {
  std::shared_ptr<kernels::WorkerPool> workers;
  std::shared_ptr<const Packed> packed;
  std::shared_ptr<const PerExpert> per_expert;
  ExpertsShape shape;
  size_t columns;
  bool adds_identities;
  const float* x;
  size_t x_stride;
  kernels::ExpertChoiceArgs choice;
  float* inner;  // [tokens * top_k, gate's columns and up's]
  float* each;   // [tokens * top_k, hidden]
  float* out;

  static const float* bias_or_null(const std::vector<float>& bias) {
    return bias.empty() ? nullptr : bias.data();
  }

  void operator()() const {
    const size_t assignments = choice.rows * shape.top_k;
    const size_t width = shape.has_gate ? 2 * columns : columns;
    kernels::choose_experts(*workers, choice);
    if (!per_expert->scales.empty())
      for (size_t i = 0; i < assignments; ++i)
        choice.weights[i] *= per_expert->scales[choice.ids[i]];
    const kernels::ExpertRows groups =
        kernels::group_by_expert({choice.ids, assignments}, shape.top_k, shape.choices());
    const auto offsets = std::span(groups.offsets).first(shape.experts + 1);
    kernels::moe_matmul(*workers, packed->gate_up,
                        {.x = x,
                         .x_stride = x_stride,
                         .offsets = offsets,
                         .x_rows = groups.rows.data(),
                         .y = inner,
                         .bias = bias_or_null(packed->gate_up_bias)});
    run_gated(*workers, shape.gate, shape.limit,
              {.gate = inner,
               .up = inner + width - columns,
               .out = inner,
               .rows = offsets.back(),
               .width = columns,
               .gate_stride = width,
               .up_stride = width,
               .out_stride = width});
    kernels::moe_matmul(*workers, packed->down,
                        {.x = inner,
                         .x_stride = width,
                         .offsets = offsets,
                         .y = each,
                         .bias = bias_or_null(packed->down_bias)});
    give_back(groups);
    kernels::combine_experts(*workers, {.y = each,
                                        .places = groups.places.data(),
                                        .weights = choice.weights,
                                        .rows = choice.rows,
                                        .top_k = shape.top_k,
                                        .width = shape.hidden,
                                        .out = out});
  }

  /// Fills the rows of identities, which come after those of all experts.
  void give_back(const kernels::ExpertRows& groups) const {
    for (size_t i = groups.offsets[shape.experts]; i < groups.assignments(); ++i) {
      float* row = each + i * shape.hidden;
      if (adds_identities)
        std::copy_n(x + groups.rows[i] * x_stride, shape.hidden, row);
      else
        std::fill_n(row, shape.hidden, 0.0F);
    }
  }
};

array Experts::run_fast(const array& x, const array& logits) const {
  const auto bind = [packed = packed_, workers = context_.workers, shape = shape_,
                     columns = size_t{columns_}, is_first = is_first_, per_expert = per_expert_](
                        const std::vector<array>& in, std::vector<array>& out) -> CpuCall {
    for (array& each : out) allocate(each);
    return Bound{.workers = workers,
                 .packed = packed,
                 .per_expert = per_expert,
                 .shape = shape,
                 .columns = columns,
                 .adds_identities = is_first,
                 .x = in[0].data<float>(),
                 .x_stride = row_stride(in[0]),
                 .choice = {.logits = in[1].data<float>(),
                            .rows = static_cast<size_t>(in[1].shape(0)),
                            .experts = shape.choices(),
                            .top_k = shape.top_k,
                            .routing = shape.routing,
                            .bias = per_expert->bias.empty() ? nullptr : per_expert->bias.data(),
                            .logits_stride = row_stride(in[1]),
                            .ids = out[4].data<uint32_t>(),
                            .weights = out[3].data<float>()},
                 .inner = out[1].data<float>(),
                 .each = out[2].data<float>(),
                 .out = out[0].data<float>()};
  };
  const int tokens = x.shape(0), top_k = static_cast<int>(shape_.top_k);
  const int hidden = static_cast<int>(shape_.hidden);
  const int width = static_cast<int>(shape_.has_gate ? 2 * columns_ : columns_);
  // All but the first output are the node's own memory.
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), "Experts", bind);
  return array::make_arrays({{tokens, hidden},
                             {tokens * top_k, width},
                             {tokens * top_k, hidden},
                             {tokens, top_k},
                             {tokens, top_k}},
                            {mx::float32, mx::float32, mx::float32, mx::float32, mx::uint32}, op,
                            {x, logits})
      .front();
}

}  // namespace tandem::tensor
