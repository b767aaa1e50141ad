#include "format/layouts/gpt_oss_experts.h"

#include <fmt/format.h>

#include <cstring>

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {
namespace {

constexpr int64_t kBlockBytes = 16;
constexpr Quantization kMxfp4 = {.bits = 4, .group_size = 32, .mode = QuantMode::kMxfp4};

/// How a tensor of all experts is made of a published one.
struct View {
  std::string source;
  Tensor shown = {};  // type and shape
  size_t first = 0;   // of the source's outputs, of which every step-th is taken
  size_t step = 1;
  bool transposes = false;  // outputs are columns of the source

  /// One expert.
  void copy(const std::byte* from, size_t bytes, std::byte* to) const;
};

/// Runs of `size` bytes at `stride` from each other.
void gather(const std::byte* from, size_t stride, size_t size, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * size, from + i * stride, size);
}

void View::copy(const std::byte* from, size_t bytes, std::byte* to) const {
  const auto outputs = static_cast<size_t>(shown.shape[1]);
  const size_t row = bytes / (outputs * step);  // of one output
  if (!transposes) return gather(from + first * row, step * row, row, outputs, to);
  const size_t size = size_of(shown.dtype), inputs = row / size;
  for (size_t o = 0; o < outputs; ++o, to += row)
    gather(from + (first + o * step) * size, outputs * step * size, size, inputs, to);
}

/// Some experts of a view.
Result<Tensor> shown_rows(const Checkpoint& from, const View& view, RowRange experts) {
  auto source = from.tensor(view.source, experts);
  if (!source) return source;
  std::vector<int64_t> shape = view.shown.shape;
  shape[0] = source->shape[0];
  if (view.step == 1 && !view.transposes)
    return Tensor{view.shown.dtype, std::move(shape), source->bytes, source->owner};
  const auto count = static_cast<size_t>(shape[0]);
  NewTensor out(view.shown.dtype, std::move(shape));
  for (size_t e = 0; e < count; ++e) {
    const size_t bytes = source->bytes.size() / count, own = out.bytes.size() / count;
    view.copy(source->bytes.data() + e * bytes, bytes, out.bytes.data() + e * own);
  }
  return out.tensor;
}

void show(const Checkpoint& from, const std::string& name, const View& view, Derivations& out) {
  out.tensors[name] = {
      .dtype = view.shown.dtype, .shape = view.shown.shape, .make = [&from, view](RowRange rows) {
        return shown_rows(from, view, rows);
      }};
}

/// One of the tensors of a projection: "", "_blocks", "_scales" or "_bias".
Status add_projection(const Checkpoint& from,
                      const std::string& name,
                      const std::string& place,
                      std::string_view projection,
                      std::string_view kind,
                      Derivations& out) {
  auto source = from.describe(name);
  if (!source) return source.error();
  const bool is_fused = projection == "gate_up_proj", is_mxfp4 = kind == "_blocks";
  View view = {.source = name, .step = is_fused ? 2U : 1U};
  auto& shape = source->shape;
  bool fits = shape.size() == (kind == "_bias" ? 2 : 3);
  if (is_mxfp4) {
    fits = shape.size() == 4 && shape[3] == kBlockBytes && source->dtype == Dtype::kU8;
    if (fits) shape = {shape[0], shape[1], shape[2] * kBlockBytes / 4};
    source->dtype = Dtype::kU32;
  } else if (kind.empty() && fits) {
    view.transposes = true;
    std::swap(shape[1], shape[2]);
  }
  fits = fits && shape[1] % static_cast<int64_t>(view.step) == 0;
  const char* leaf = kind == "_bias" ? "bias" : kind == "_scales" ? "scales" : "weight";
  if (!fits || (leaf == std::string_view("weight") && !kind.empty() && !is_mxfp4))
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is no tensor of gpt-oss' experts in a layout that is known: "
                             "fetch the model again",
                             name)};
  if (is_fused) shape[1] /= 2;
  view.shown = *std::move(source);
  out.hidden.insert(name);
  const auto add = [&](const std::string& module) {
    show(from, fmt::format("{}.{}", module, leaf), view, out);
    if (is_mxfp4) out.quantizations[module] = kMxfp4;
  };
  add(place + (is_fused ? "gate_proj" : "down_proj"));
  if (!is_fused) return {};
  view.first = 1;
  add(place + "up_proj");
  return {};
}

Status add_tensor(const Checkpoint& from, const std::string& name, Derivations& out) {
  constexpr std::string_view kBlock = ".mlp.experts.";
  const size_t at = name.find(kBlock);
  if (at == std::string::npos) return {};
  const size_t end = at + kBlock.size();
  const std::string_view leaf = std::string_view(name).substr(end);
  for (const std::string_view projection : {"gate_up_proj", "down_proj"}) {
    if (!leaf.starts_with(projection)) continue;
    const std::string_view kind = leaf.substr(projection.size());
    if (!kind.empty() && kind[0] != '_') continue;  // as mlx-lm has it
    return add_projection(from, name, name.substr(0, end), projection, kind, out);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> gpt_oss_experts(
    std::shared_ptr<const Checkpoint> checkpoint) {
  const auto type = checkpoint->config().find("model_type");
  if (type == checkpoint->config().end() || *type != "gpt_oss") return checkpoint;
  Derivations shown;
  for (const std::string& name : checkpoint->names())
    if (const Status added = add_tensor(*checkpoint, name, shown); !added) return added.error();
  return derived(std::move(checkpoint), std::move(shown));
}

}  // namespace tandem::format
