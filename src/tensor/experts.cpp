#include "tensor/experts.h"

#include <cstring>

#include "tensor/activation.h"
#include "tensor/dtype.h"
#include "tensor/expert_weights.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

using topology::Range;

/// A part of a tensor's rows, in bytes of a row.
struct Window {
  Range rows;
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return rows.size() * (end - begin); }

  void copy(const format::Tensor& from, std::byte* to) const {
    const size_t stride = from.bytes.size() / static_cast<size_t>(from.shape[0]);
    for (uint32_t r = rows.begin; r < rows.end; ++r, to += end - begin)
      std::memcpy(to, from.bytes.data() + r * stride + begin, end - begin);
  }
};

/// Columns of a tensor that holds `per` of them in each element.
Window window(const format::Tensor& t, Range rows, Range columns, size_t numerator, size_t per) {
  const size_t bytes = format::size_of(t.dtype) * numerator;
  return {.rows = rows, .begin = columns.begin * bytes / per, .end = columns.end * bytes / per};
}

/// The windows of all experts in one array [experts, rows, any].
class Stack {
 public:
  void add(const format::Tensor& t, const Window& w) {
    dtype_ = t.dtype;
    rows_ = w.rows.size();
    bytes_.resize(bytes_.size() + w.size());
    w.copy(t, bytes_.data() + bytes_.size() - w.size());
    ++count_;
  }

  array finish() const {
    const size_t width = bytes_.size() / (count_ * rows_ * format::size_of(dtype_));
    return own_array(bytes_.data(),
                     {static_cast<int>(count_), static_cast<int>(rows_), static_cast<int>(width)},
                     mlx_dtype(dtype_));
  }

 private:
  std::vector<std::byte> bytes_;
  format::Dtype dtype_ = format::Dtype::kF32;
  size_t count_ = 0;
  size_t rows_ = 0;
};

array cast(const array& x, mx::Dtype dtype) {
  array out = mx::astype(x, dtype);
  mx::eval(out);
  return out;
}

/// The type that a dense product of experts is computed in: MLX has only this one on the CPU.
mx::Dtype product_dtype(mx::Dtype dtype) {
  return mx::default_device() == mx::Device::cpu ? mx::float32 : dtype;
}

void check_group_cut(const Weights& module, Range columns) {
  const auto quantization = module.quantization();
  if (!quantization) return;
  const auto group = static_cast<uint32_t>(quantization->group_size);
  if (columns.begin % group != 0 || columns.end % group != 0)
    throw LoadFailure(
        {ErrorCode::kInvalid, fmt::format("{}: columns {} to {} cut a quantization group of {}",
                                          module.path(), columns.begin, columns.end, group)});
}

struct Choice {
  array ids;      // [tokens, top_k]
  array weights;  // [tokens, top_k] float32
};

/// Values [tokens, experts] with 0 in all but the best groups.
array drop_groups(const array& values, const kernels::ExpertRouting& routing) {
  const int tokens = values.shape(0), groups = static_cast<int>(routing.groups);
  const int dropped = groups - static_cast<int>(routing.top_groups);
  const array grouped = mx::reshape(values, {tokens, groups, -1});
  const int best = routing.weighs_groups_by_best ? 1 : 2;
  const array of_group = mx::sum(mx::topk(grouped, best, -1), -1, true);  // [tokens, groups, 1]
  const array worst =
      mx::slice(mx::argpartition(of_group, dropped - 1, 1), {0, 0, 0}, {tokens, dropped, 1});
  const array everywhere = mx::broadcast_to(worst, {tokens, dropped, grouped.shape(2)});
  const array out(routing.leaves_groups_out ? -INFINITY : 0.0F);
  return mx::reshape(mx::put_along_axis(grouped, everywhere, out, 1), values.shape());
}

array scores_of(const array& logits, kernels::ExpertScore score) {
  const array all = mx::astype(logits, mx::float32);
  return score == kernels::ExpertScore::kSoftmax ? mx::softmax(all, -1, true) : mx::sigmoid(all);
}

Choice choose(const array& logits, const ExpertsShape& shape, const PerExpert& per_expert) {
  const kernels::ExpertRouting& routing = shape.routing;
  const int choices = static_cast<int>(shape.choices()), top_k = static_cast<int>(shape.top_k);
  const array scores = scores_of(logits, routing.score);
  array values = per_expert.bias.empty() ? scores : mx::add(scores, from_host(per_expert.bias));
  if (routing.top_groups < routing.groups) values = drop_groups(values, routing);
  const array order = mx::argpartition(values, -top_k, -1);
  const array ids = mx::slice(order, {0, choices - top_k}, {logits.shape(0), choices});
  array weights = mx::take_along_axis(scores, ids, -1);
  if (routing.renormalizes) weights = mx::divide(weights, mx::sum(weights, -1, true));
  if (routing.scale != 1) weights = mx::multiply(weights, array(routing.scale));
  if (!per_expert.scales.empty())
    weights = mx::multiply(weights, mx::take(from_host(per_expert.scales), ids));
  return {ids, weights};
}

/// each [tokens, top_k, any] with x [tokens, any], or zeros, in the places of identities.
array with_identities(const array& each,
                      const array& x,
                      const array& ids,
                      const ExpertsShape& shape,
                      bool adds_them) {
  const array is_identity = mx::expand_dims(mx::greater_equal(ids, array(shape.experts)), 2);
  const array given = adds_them ? mx::expand_dims(x, 1) : array(0.0F, x.dtype());
  return mx::where(is_identity, given, each);
}

void check_count(const Weights& module, const std::vector<float>& numbers, uint32_t experts) {
  if (!numbers.empty() && numbers.size() != experts)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: there are {} numbers for {} experts",
                                                        module.path(), numbers.size(), experts)});
}

}  // namespace

Experts::Experts(const Weights& module,
                 const ExpertsShape& shape,
                 Range columns,
                 PerExpert per_expert)
    : context_(module.context()),
      shape_(shape),
      columns_(columns.size()),
      is_first_(columns.begin == 0),
      per_expert_(std::make_shared<const PerExpert>(std::move(per_expert))) {
  for (const auto* numbers : {&per_expert_->bias, &per_expert_->scales})
    check_count(module, *numbers, shape.choices());
  check_group_cut(ExpertWeights(module, "down_proj", shape.hidden, shape.width).at(0), columns);
  if (context_.is_fast())
    load_packed(module, columns);
  else
    load_plain(module, columns);
}

Experts::Plain Experts::load_projection(const ExpertWeights& from,
                                        Range rows,
                                        Range inputs,
                                        Range bias_rows) const {
  Stack weights, scales, biases;
  const MappedMatrix first = from.map(0);
  const auto& quantization = first.quantization;
  for (uint32_t e = 0; e < shape_.experts; ++e) {
    const MappedMatrix m = from.map(e);
    require_alike(from.at(e), m, first);
    require_finite(m, rows, inputs);
    const auto bits = quantization ? static_cast<size_t>(quantization->bits) : size_t{1};
    weights.add(m.weight, window(m.weight, rows, inputs, bits, quantization ? 32 : 1));
    if (!quantization) continue;
    const auto group = static_cast<size_t>(quantization->group_size);
    scales.add(m.scales, window(m.scales, rows, inputs, 1, group));
    if (m.has_biases()) biases.add(m.biases, window(m.biases, rows, inputs, 1, group));
  }
  Plain out{.weight = weights.finish()};
  if (quantization) {
    out.quantization = *quantization;
    out.scales = scales.finish();
    if (first.has_biases()) {
      out.scales = cast(*out.scales, context_.dtype);
      out.biases = cast(biases.finish(), context_.dtype);
    }
  } else {
    out.weight = cast(out.weight, product_dtype(context_.dtype));
  }
  const auto bias = from.bias(shape_.experts, bias_rows);
  const mx::Shape shape = {static_cast<int>(shape_.experts), static_cast<int>(rows.size())};
  if (!bias.empty()) out.bias = cast(from_host(bias, shape), context_.dtype);
  return out;
}

void Experts::load_plain(const Weights& module, Range columns) {
  const Range whole = {0, shape_.hidden};
  const auto load = [&](const ExpertWeights& from, Range rows, Range inputs, Range bias_rows) {
    plain_.push_back(load_projection(from, rows, inputs, bias_rows));
    const Plain& last = plain_.back();
    for (const auto& each : {std::optional(last.weight), last.scales, last.biases})
      if (each) module.count_bytes(each->nbytes());
  };
  if (shape_.has_gate)
    load({module, "gate_proj", shape_.width, shape_.hidden}, columns, whole, columns);
  load({module, "up_proj", shape_.width, shape_.hidden}, columns, whole, columns);
  load({module, "down_proj", shape_.hidden, shape_.width}, whole, columns, down_bias_of(columns));
}

array Experts::Plain::multiply(const array& x, const array& ids) const {
  const array y = product(x, ids);
  return bias ? mx::add(y, mx::expand_dims(mx::take(*bias, ids, 0), 2)) : y;
}

array Experts::Plain::product(const array& x, const array& ids) const {
  const auto& [bits, group, mode] = quantization;
  if (scales)
    return mx::gather_qmm(x, weight, *scales, biases, std::nullopt, ids, true, group, bits,
                          std::string(format::name(mode)));
  const array y =
      mx::gather_mm(mx::astype(x, weight.dtype()), mx::swapaxes(weight, -1, -2), std::nullopt, ids);
  return mx::astype(y, x.dtype());
}

array Experts::run_plain(const array& x, const array& logits) const {
  const Choice choice = choose(logits, shape_, *per_expert_);
  const array rows = mx::expand_dims(x, {1, 2});
  const array ids = shape_.identities == 0  // what is computed in their place is not looked at
                        ? choice.ids
                        : mx::minimum(choice.ids, array(shape_.experts - 1));
  const array up = plain_[plain_.size() - 2].multiply(rows, ids);
  const array gate = shape_.has_gate ? plain_[0].multiply(rows, ids) : up;
  const array inner = gated(context_, shape_.gate, gate, up, shape_.limit);
  array each = mx::squeeze(plain_.back().multiply(inner, ids), 2);
  if (shape_.identities != 0) each = with_identities(each, x, choice.ids, shape_, is_first_);
  const array weighed = mx::multiply(each, mx::expand_dims(choice.weights, 2));
  return mx::astype(mx::sum(weighed, 1), x.dtype());
}

array Experts::operator()(const array& x, const array& logits) const {
  return context_.is_fast() ? run_fast(x, logits) : run_plain(x, logits);
}

}  // namespace tandem::tensor
