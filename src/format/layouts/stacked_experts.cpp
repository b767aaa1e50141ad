#include "format/layouts/stacked_experts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "format/layouts/derived_checkpoint.h"
#include "format/layouts/turn.h"

namespace tandem::format {
namespace {

/// One projection inside a stack of matrices: rows [begin, end) of each as it is computed with.
struct StackPart {
  std::string name;
  bool is_transposed = false;  // stored as [inputs, outputs]
  int64_t begin = 0;
  int64_t end = 0;
};

Result<Tensor> part_of(const Checkpoint& from, const StackPart& part, RowRange experts) {
  auto stack = from.tensor(part.name, experts);
  if (!stack) return stack;
  const auto count = static_cast<size_t>(stack->shape[0]);
  const auto rows = static_cast<size_t>(stack->shape[1]);
  const auto columns = static_cast<size_t>(stack->shape[2]);
  const size_t size = size_of(stack->dtype), matrix = rows * columns * size;
  const auto begin = static_cast<size_t>(part.begin);
  const size_t outputs = static_cast<size_t>(part.end) - begin;
  const size_t inputs = part.is_transposed ? rows : columns;
  const std::vector<int64_t> shape = {stack->shape[0], part.end - part.begin,
                                      static_cast<int64_t>(inputs)};
  if (!part.is_transposed && (count == 1 || outputs == rows)) {  // as they lie
    stack->bytes = stack->bytes.subspan(begin * columns * size, count * outputs * columns * size);
    stack->shape = shape;
    return stack;
  }
  NewTensor out(stack->dtype, shape);
  over_threads(count, out.bytes.size(), [&](size_t first, size_t last) {
    for (size_t e = first; e < last; ++e) {
      const std::byte* const source = stack->bytes.data() + e * matrix;
      std::byte* const to = out.bytes.data() + e * outputs * inputs * size;
      if (part.is_transposed)
        turn(source, {rows, columns, begin, outputs}, size, to);
      else
        std::memcpy(to, source + begin * columns * size, outputs * columns * size);
    }
  });
  return out.tensor;
}

/// [experts, …] of gate_up_proj and down_proj, one of the two orders.
struct StackShape {
  bool is_transposed = false;
  int64_t experts = 0;
  int64_t hidden = 0;
  int64_t width = 0;
};

std::optional<StackShape> shape_of(const Tensor& gate_up, const Tensor& down) {
  if (gate_up.shape.size() != 3 || down.shape.size() != 3) return std::nullopt;
  const int64_t a = gate_up.shape[1], b = gate_up.shape[2];
  const int64_t c = down.shape[1], d = down.shape[2];
  const bool is_empty = gate_up.shape[0] == 0 || c == 0 || d == 0;
  if (gate_up.shape[0] != down.shape[0] || is_empty) return std::nullopt;
  if (a == 2 * d && b == c) return StackShape{false, down.shape[0], b, d};
  if (b == 2 * c && a == d) return StackShape{true, down.shape[0], a, c};
  return std::nullopt;
}

Status add_stack(const Checkpoint& from, const std::string& experts, Derivations& derivations) {
  const std::string gate_up = experts + ".gate_up_proj", down = experts + ".down_proj";
  const auto inner = from.describe(gate_up);
  if (!inner) return inner.error();
  const auto outer = from.describe(down);
  if (!outer) return outer.error();
  const auto shape = shape_of(*inner, *outer);
  if (!shape)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{} of shape [{}] does not fit {} of shape [{}]: fetch the checkpoint "
                    "again",
                    gate_up, fmt::join(inner->shape, ", "), down, fmt::join(outer->shape, ", "))};
  const std::string block = experts.substr(0, experts.rfind("experts"));
  const auto add = [&](const char* leaf, const Tensor& stored, StackPart part, int64_t inputs) {
    derivations.tensors[fmt::format("{}switch_mlp.{}.weight", block, leaf)] = {
        .dtype = stored.dtype,
        .shape = {shape->experts, part.end - part.begin, inputs},
        .make = [&from, part](RowRange rows) { return part_of(from, part, rows); }};
  };
  const bool turned = shape->is_transposed;
  add("gate_proj", *inner, {gate_up, turned, 0, shape->width}, shape->hidden);
  add("up_proj", *inner, {gate_up, turned, shape->width, 2 * shape->width}, shape->hidden);
  add("down_proj", *outer, {down, turned, 0, shape->hidden}, shape->width);
  derivations.hidden.insert({gate_up, down});
  return {};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> stacked_experts(
    std::shared_ptr<const Checkpoint> checkpoint) {
  constexpr std::string_view kLeaf = ".gate_up_proj";
  Derivations derivations;
  for (const std::string& name : checkpoint->names()) {
    if (!name.ends_with(".experts.gate_up_proj")) continue;
    const std::string experts = name.substr(0, name.size() - kLeaf.size());
    if (checkpoint->has(name + "_bias")) continue;
    if (Status added = add_stack(*checkpoint, experts, derivations); !added) return added.error();
  }
  return derived(std::move(checkpoint), std::move(derivations));
}

}  // namespace tandem::format
