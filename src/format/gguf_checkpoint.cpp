#include "format/gguf_checkpoint.h"

#include <cstring>
#include <map>
#include <utility>

#include "format/gguf.h"
#include "format/gguf_blocks.h"
#include "format/mapped_file.h"

namespace tandem::format {
namespace {

using Json = nlohmann::json;

/// Which of a module's tensors a name stands for.
enum class Part : uint8_t { kPlain, kCodes, kScales, kBiases };

struct Source {
  const GgufTensor* tensor = nullptr;
  Part part = Part::kPlain;
};

bool is_readable(uint32_t type) {
  switch (static_cast<GgmlType>(type)) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
    case GgmlType::kQ8_0:
    case GgmlType::kMxfp4:
      return true;
  }
  return false;
}

Dtype plain_dtype(GgmlType type) {
  if (type == GgmlType::kF16) return Dtype::kF16;
  return type == GgmlType::kBF16 ? Dtype::kBF16 : Dtype::kF32;
}

class GgufCheckpoint final : public Checkpoint {
 public:
  GgufCheckpoint(MappedFile file, Gguf gguf, Json config)
      : file_(std::move(file)), gguf_(std::move(gguf)), config_(std::move(config)) {}

  /// Fills the table of names. kUnsupported names a tensor that the model would need and we cannot
  /// read.
  Status index() {
    const auto model_type = config_.at("model_type").get<std::string>();
    for (const auto& [gguf_name, tensor] : gguf_.tensors()) {
      const std::string name = hugging_face_name(gguf_name, model_type);
      if (name.empty() && gguf_name == "rope_freqs.weight") continue;  // see add_rope_factors
      if (name.empty())
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("{}: tensor {} is not known in this architecture", path(), gguf_name)};
      if (!is_readable(tensor.type)) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: tensor {} has ggml type {}; F32, F16, BF16, Q4_0, Q4_1, Q8_0 "
                                 "and MXFP4 are supported",
                                 path(), gguf_name, tensor.type)};
      }
      const Status added = add(name, tensor);
      if (!added) return added.error();
    }
    return add_rope_factors();
  }

  const Json& config() const override { return config_; }
  bool has(std::string_view name) const override { return sources_.find(name) != sources_.end(); }
  uint64_t weight_bytes() const override { return weight_bytes_; }
  std::filesystem::path directory() const override { return {}; }
  const Gguf* gguf() const override { return &gguf_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, source] : sources_) result.push_back(name);
    return result;
  }

  Result<Tensor> describe(std::string_view name) const override {
    const auto found = sources_.find(name);
    if (found == sources_.end())
      return Error{ErrorCode::kNotFound, fmt::format("{} has no tensor {}", path(), name)};
    const GgufTensor& stored = *found->second.tensor;
    const auto type = static_cast<GgmlType>(stored.type);
    Tensor tensor{.dtype = Dtype::kF16, .shape = stored.shape, .bytes = {}, .owner = nullptr};
    switch (found->second.part) {
      case Part::kPlain:
        tensor.dtype = plain_dtype(type);
        break;
      case Part::kCodes:
        tensor.dtype = Dtype::kU32;
        tensor.shape.back() = tensor.shape.back() * *block_bits(type) / 32;
        break;
      case Part::kScales:
      case Part::kBiases:
        if (block_mode(type) == QuantMode::kMxfp4) tensor.dtype = Dtype::kU8;
        tensor.shape.back() /= kBlockGroup;
        break;
    }
    return tensor;
  }

  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows) const override {
    auto tensor = describe(name);
    if (!tensor) return tensor;
    const Source& source = sources_.find(name)->second;
    const auto stored = map_rows(*source.tensor, name, rows);
    if (!stored) return stored.error();
    if (rows) tensor->shape[0] = rows->end - rows->begin;
    if (source.part == Part::kPlain) {
      tensor->bytes = stored->bytes;
      tensor->owner = stored->owner;
      return tensor;
    }
    auto converted = std::make_shared<std::vector<std::byte>>(convert(source, stored->bytes));
    tensor->bytes = *converted;
    tensor->owner = std::move(converted);
    return tensor;
  }

  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    const auto found = sources_.find(fmt::format("{}.scales", module));
    if (found == sources_.end()) return std::optional<Quantization>();
    const auto type = static_cast<GgmlType>(found->second.tensor->type);
    return std::optional<Quantization>(
        {.bits = *block_bits(type), .group_size = kBlockGroup, .mode = block_mode(type)});
  }

 private:
  std::string path() const { return file_.path().string(); }

  Status add(const std::string& name, const GgufTensor& tensor) {
    const auto type = static_cast<GgmlType>(tensor.type);
    const int64_t width = tensor.shape.empty() ? 0 : tensor.shape.back();
    uint64_t elements = 1;
    for (const int64_t axis : tensor.shape) {
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(axis), &elements))
        return Error{ErrorCode::kCorrupt, fmt::format("{}: tensor {} is too large", path(), name)};
    }
    const bool blocks = block_bits(type).has_value();
    if (blocks && (width % kBlockGroup != 0 || !name.ends_with(".weight"))) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: tensor {} has rows of {}, not a multiple of {}", path(), name,
                               width, kBlockGroup)};
    }
    const uint64_t bytes = elements > (uint64_t{1} << 48) ? elements : stored_bytes(type, elements);
    if (bytes > file_.size() - tensor.offset) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: tensor {} ends behind the end of the file: it is truncated",
                               path(), name)};
    }
    weight_bytes_ += bytes;
    sources_.emplace(name, Source{&tensor, blocks ? Part::kCodes : Part::kPlain});
    if (!blocks) return {};
    const std::string module = name.substr(0, name.rfind('.'));
    sources_.emplace(module + ".scales", Source{&tensor, Part::kScales});
    if (block_mode(type) == QuantMode::kAffine)
      sources_.emplace(module + ".biases", Source{&tensor, Part::kBiases});
    return {};
  }

  /// Llama 3.1's converter bakes the llama3 rope rule into a tensor of divisors, one per frequency.
  Status add_rope_factors() {
    const auto found = gguf_.tensors().find("rope_freqs.weight");
    if (found == gguf_.tensors().end()) return {};
    const GgufTensor& tensor = found->second;
    if (tensor.shape.size() != 1 || static_cast<GgmlType>(tensor.type) != GgmlType::kF32) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: rope_freqs.weight is not a list of F32", path())};
    }
    const auto mapped = file_.map(tensor.offset, static_cast<uint64_t>(tensor.shape[0]) * 4);
    if (!mapped) return mapped.error();
    std::vector<float> factors(static_cast<size_t>(tensor.shape[0]));
    std::memcpy(factors.data(), mapped->bytes.data(), mapped->bytes.size());
    config_["rope_scaling"] = {{"rope_type", "factors"}, {"factors", factors}};
    return {};
  }

  Result<Mapping> map_rows(const GgufTensor& tensor,
                           std::string_view name,
                           std::optional<RowRange> rows) const {
    const int64_t all = tensor.shape.empty() ? 0 : tensor.shape[0];
    const RowRange range = rows.value_or(RowRange{0, all});
    if (range.begin < 0 || range.begin > range.end || range.end > all) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("{}: rows {} to {} of {}", name, range.begin, range.end, all)};
    }
    uint64_t row = 1;
    for (size_t i = 1; i < tensor.shape.size(); ++i) row *= static_cast<uint64_t>(tensor.shape[i]);
    const uint64_t row_bytes = stored_bytes(static_cast<GgmlType>(tensor.type), row);
    return file_.map(tensor.offset + row_bytes * static_cast<uint64_t>(range.begin),
                     row_bytes * static_cast<uint64_t>(range.end - range.begin));
  }

  static std::vector<std::byte> convert(const Source& source, std::span<const std::byte> blocks) {
    const auto type = static_cast<GgmlType>(source.tensor->type);
    if (source.part == Part::kCodes) return block_codes(type, blocks);
    return source.part == Part::kScales ? block_scales(type, blocks) : block_biases(type, blocks);
  }

  const MappedFile file_;
  const Gguf gguf_;
  Json config_;
  std::map<std::string, Source, std::less<>> sources_;
  uint64_t weight_bytes_ = 0;
};

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto whole = file->map(0, file->size());
  if (!whole) return whole.error();
  auto gguf = Gguf::parse(whole->bytes, file->size());
  if (!gguf)
    return Error{gguf.error().code, fmt::format("{}: {}", path.string(), gguf.error().message)};
  auto config = config_from_gguf(*gguf);
  if (!config)
    return Error{config.error().code, fmt::format("{}: {}", path.string(), config.error().message)};
  auto checkpoint =
      std::make_shared<GgufCheckpoint>(std::move(*file), std::move(*gguf), std::move(*config));
  const Status indexed = checkpoint->index();
  if (!indexed) return indexed.error();
  return std::shared_ptr<const Checkpoint>(std::move(checkpoint));
}

}  // namespace tandem::format
