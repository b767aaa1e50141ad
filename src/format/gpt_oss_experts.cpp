#include "format/gpt_oss_experts.h"

#include <fmt/format.h>

#include <cstring>
#include <map>

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
  bool is_mxfp4 = false;

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

class GptOssExperts final : public Checkpoint {
 public:
  explicit GptOssExperts(std::shared_ptr<const Checkpoint> published)
      : published_(std::move(published)) {}

  /// Sorts the tensors into what is shown anew and what stays.
  Status add_all() {
    for (const std::string& name : published_->names())
      if (const Status added = add(name); !added) return added;
    return {};
  }
  bool changes_nothing() const { return is_unchanged_; }

  const nlohmann::json& config() const override { return published_->config(); }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, view] : views_) out.push_back(name);
    return out;
  }

  bool has(std::string_view name) const override { return views_.contains(name); }

  Result<Tensor> describe(std::string_view name) const override {
    const auto found = views_.find(name);
    if (found == views_.end()) return published_->describe(name);  // which names the checkpoint
    return found->second.shown;
  }

  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows) const override {
    const auto found = views_.find(name);
    if (found == views_.end()) return published_->tensor(name, rows);
    const View& view = found->second;
    auto source = published_->tensor(view.source, rows);
    if (!source) return source;
    Tensor out = view.shown;
    if (!out.shape.empty()) out.shape[0] = source->shape[0];
    out.bytes = source->bytes;
    out.owner = source->owner;
    if (view.step > 1 || view.transposes) convert(view, out);
    return out;
  }

  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    const auto found = views_.find(fmt::format("{}.weight", module));
    if (found != views_.end() && found->second.is_mxfp4) return std::optional(kMxfp4);
    return published_->quantization(module);
  }

  uint64_t weight_bytes() const override { return published_->weight_bytes(); }
  std::filesystem::path directory() const override { return published_->directory(); }
  std::string notice() const override { return published_->notice(); }

 private:
  /// The bytes of published experts → those of shown ones.
  static void convert(const View& view, Tensor& tensor) {
    const auto experts = static_cast<size_t>(tensor.shape[0]);
    if (experts == 0) return;
    const size_t bytes = tensor.bytes.size() / experts, shown = bytes / view.step;
    auto copy = std::make_shared<std::vector<std::byte>>(experts * shown);
    for (size_t e = 0; e < experts; ++e)
      view.copy(tensor.bytes.data() + e * bytes, bytes, copy->data() + e * shown);
    tensor.bytes = *copy;
    tensor.owner = std::move(copy);
  }

  Status add(const std::string& name) {
    constexpr std::string_view kBlock = ".mlp.experts.";
    auto source = published_->describe(name);
    if (!source) return source.error();
    const size_t at = name.find(kBlock);
    const std::string leaf = at == std::string::npos ? "" : name.substr(at + kBlock.size());
    for (const std::string_view projection : {"gate_up_proj", "down_proj"}) {
      if (!leaf.starts_with(projection)) continue;
      const std::string_view kind = std::string_view(leaf).substr(projection.size());
      if (!kind.empty() && kind[0] != '_') continue;  // as mlx-lm has it
      const std::string place = name.substr(0, at + kBlock.size());
      return add_projection(place, projection, kind, name, *std::move(source));
    }
    views_[name] = {.source = name, .shown = *std::move(source)};
    return {};
  }

  /// One of the tensors of a projection: "", "_blocks", "_scales" or "_bias".
  Status add_projection(const std::string& place,
                        std::string_view projection,
                        std::string_view kind,
                        const std::string& name,
                        Tensor source) {
    is_unchanged_ = false;
    const bool is_fused = projection == "gate_up_proj";
    View view = {.source = name, .step = is_fused ? 2U : 1U};
    auto& shape = source.shape;
    bool fits = shape.size() == (kind == "_bias" ? 2 : 3);
    if (kind == "_blocks") {
      fits = shape.size() == 4 && shape[3] == kBlockBytes && source.dtype == Dtype::kU8;
      if (fits) shape = {shape[0], shape[1], shape[2] * kBlockBytes / 4};
      source.dtype = Dtype::kU32;
      view.is_mxfp4 = true;
    } else if (kind.empty() && fits) {
      view.transposes = true;
      std::swap(shape[1], shape[2]);
    }
    fits = fits && shape[1] % static_cast<int64_t>(view.step) == 0;
    const char* leaf = kind == "_bias" ? "bias" : kind == "_scales" ? "scales" : "weight";
    if (!fits || (leaf == std::string_view("weight") && !kind.empty() && kind != "_blocks"))
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is no tensor of gpt-oss' experts in a layout that is known: "
                               "fetch the model again",
                               name)};
    if (is_fused) shape[1] /= 2;
    view.shown = std::move(source);
    if (!is_fused) {
      views_[fmt::format("{}down_proj.{}", place, leaf)] = std::move(view);
      return {};
    }
    views_[fmt::format("{}gate_proj.{}", place, leaf)] = view;
    view.first = 1;
    views_[fmt::format("{}up_proj.{}", place, leaf)] = std::move(view);
    return {};
  }

  std::shared_ptr<const Checkpoint> published_;
  std::map<std::string, View, std::less<>> views_;
  bool is_unchanged_ = true;
};

}  // namespace

Result<std::shared_ptr<const Checkpoint>> gpt_oss_experts(
    std::shared_ptr<const Checkpoint> checkpoint) {
  const auto type = checkpoint->config().find("model_type");
  if (type == checkpoint->config().end() || *type != "gpt_oss") return checkpoint;
  auto shown = std::make_shared<GptOssExperts>(checkpoint);
  if (const Status added = shown->add_all(); !added) return added.error();
  if (shown->changes_nothing()) return checkpoint;
  return std::shared_ptr<const Checkpoint>(std::move(shown));
}

}  // namespace tandem::format
