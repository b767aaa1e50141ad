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

/// Some exporters of MiniMax M3 keep the expert that every token takes behind the others in one
/// stack, and gate above up: weights, and what quantization has beside them, are cut alike.
class PackedStack {
 public:
  /// `name` of a tensor below switch_mlp; `experts` without the shared one.
  PackedStack(const Checkpoint& from, const std::string& name, int64_t experts)
      : from_(from), name_(name), experts_(experts) {
    constexpr std::string_view kModule = "switch_mlp.";
    const size_t module = name.find(kModule), leaf = module + kModule.size();
    const size_t dot = name.find('.', leaf);
    block_ = name.substr(0, module);
    projection_ = name.substr(leaf, dot - leaf);
    part_ = name.substr(dot + 1);
  }

  Status add(Derivations& to) const {
    const auto stack = from_.describe(name_);
    if (!stack) return stack.error();
    const bool is_fused = projection_ == "gate_up_proj";
    const std::vector<int64_t>& shape = stack->shape;
    const bool has_shared = !shape.empty() && shape[0] == experts_ + 1;
    if (!is_fused && !has_shared) return {};
    if (shape.size() != 3 || (!has_shared && shape[0] != experts_) ||
        (is_fused && shape[1] % 2 != 0))
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{} of shape [{}] does not hold {} experts: fetch the checkpoint and "
                      "config.json again",
                      name_, fmt::join(shape, ", "), experts_)};
    to.hidden.insert(name_);
    const int64_t rows = shape[1];
    if (!is_fused) return add_rows(projection_, *stack, {0, rows}, to);
    if (Status gate = add_rows("gate_proj", *stack, {0, rows / 2}, to); !gate) return gate;
    return add_rows("up_proj", *stack, {rows / 2, rows}, to);
  }

 private:
  /// These rows of each matrix as a projection.
  Status add_rows(const std::string& as,
                  const Tensor& stack,
                  RowRange rows,
                  Derivations& to) const {
    const int64_t height = rows.end - rows.begin, inputs = stack.shape[2], shared = experts_;
    add_tensor("switch_mlp." + as,
               {stack.dtype,
                {experts_, height, inputs},
                [&from = from_, part = StackPart{name_, false, rows.begin, rows.end}](
                    RowRange some) { return part_of(from, part, some); }},
               to);
    const auto one = [&from = from_, name = name_, begin = rows.begin, shared](RowRange some) {
      const StackPart part{name, false, begin + some.begin, begin + some.end};
      auto out = part_of(from, part, {shared, shared + 1});
      if (out) out->shape.erase(out->shape.begin());
      return out;
    };
    if (stack.shape[0] > experts_)
      add_tensor("shared_experts." + as, {stack.dtype, {height, inputs}, one}, to);
    return copy_quantization(as, to);
  }

  void add_tensor(const std::string& module, DerivedTensor tensor, Derivations& to) const {
    to.tensors[fmt::format("{}{}.{}", block_, module, part_)] = std::move(tensor);
  }

  Status copy_quantization(const std::string& as, Derivations& to) const {
    if (part_ != "weight") return {};
    const auto kind = from_.quantization(fmt::format("{}switch_mlp.{}", block_, projection_));
    if (!kind) return kind.error();
    if (!*kind) return {};
    for (const char* module : {"switch_mlp", "shared_experts"})
      to.quantizations[fmt::format("{}{}.{}", block_, module, as)] = **kind;
    return {};
  }

  const Checkpoint& from_;
  const std::string& name_;
  int64_t experts_;
  std::string block_, projection_, part_;
};

Status add_packed_stacks(const Checkpoint& from, Derivations& derivations) {
  const nlohmann::json& config = from.config();
  const auto experts = config.find("num_local_experts");
  const bool is_m3 = config.value("model_type", nlohmann::json()) == "minimax_m3_vl_text";
  if (!is_m3 || experts == config.end() || !experts->is_number_integer()) return {};
  for (const std::string& name : from.names()) {
    if (name.find(".switch_mlp.") == std::string::npos) continue;
    const PackedStack stack(from, name, experts->get<int64_t>());
    if (Status added = stack.add(derivations); !added) return added;
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> stacked_experts(
    std::shared_ptr<const Checkpoint> checkpoint) {
  constexpr std::string_view kLeaf = ".gate_up_proj";
  Derivations derivations;
  if (Status packed = add_packed_stacks(*checkpoint, derivations); !packed) return packed.error();
  for (const std::string& name : checkpoint->names()) {
    if (!name.ends_with(".experts.gate_up_proj")) continue;
    const std::string experts = name.substr(0, name.size() - kLeaf.size());
    if (checkpoint->has(name + "_bias")) continue;
    if (Status added = add_stack(*checkpoint, experts, derivations); !added) return added.error();
  }
  return derived(std::move(checkpoint), std::move(derivations));
}

}  // namespace tandem::format
