#include "format/gguf_checkpoint.h"

#include <cstring>
#include <map>
#include <utility>

#include "format/gguf.h"
#include "format/gguf/architecture.h"
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

bool is_readable(GgmlType type) {
  return type == GgmlType::kF32 || type == GgmlType::kF16 || type == GgmlType::kBF16 ||
         block_bits(type).has_value();
}

Dtype plain_dtype(GgmlType type) {
  if (type == GgmlType::kF16) return Dtype::kF16;
  return type == GgmlType::kBF16 ? Dtype::kBF16 : Dtype::kF32;
}

/// Read with the config.
bool is_of_config(std::string_view gguf_name) {
  return gguf_name == "rope_freqs.weight" || gguf_name == "rope_factors_long.weight" ||
         gguf_name == "rope_factors_short.weight";
}

/// The files of a model and what all of them hold.
struct GgufFiles {
  std::vector<MappedFile> files;
  Gguf gguf;

  std::string path(size_t part = 0) const { return files[part].path().string(); }
};

/// Tensors as they are in the files, under their names in the Hugging Face layout.
class GgufCheckpoint final : public Checkpoint {
 public:
  GgufCheckpoint(GgufFiles model, Json config)
      : model_(std::move(model)), config_(std::move(config)) {}

  /// Fills the table of names. kUnsupported names a tensor that the model would need and we cannot
  /// read.
  Status index(const GgufArchitecture& architecture) {
    for (const auto& [gguf_name, tensor] : model_.gguf.tensors()) {
      if (is_of_config(gguf_name)) continue;
      const std::string name = hugging_face_name(gguf_name, architecture);
      if (name.empty())
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: tensor {} is not known in architecture {}",
                                 model_.path(tensor.part), gguf_name, architecture.name)};
      if (!is_readable(static_cast<GgmlType>(tensor.type))) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: tensor {} has ggml type {}; F32, F16, BF16, Q4_0, Q4_1, "
                                 "Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS and MXFP4 are "
                                 "supported",
                                 model_.path(tensor.part), gguf_name, tensor.type)};
      }
      const Status added = add(name, tensor);
      if (!added) return added.error();
    }
    return {};
  }

  const Json& config() const override { return config_; }
  bool has(std::string_view name) const override { return sources_.find(name) != sources_.end(); }
  uint64_t weight_bytes() const override { return weight_bytes_; }
  std::filesystem::path directory() const override { return {}; }
  const Gguf* gguf() const override { return &model_.gguf; }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, source] : sources_) result.push_back(name);
    return result;
  }

  Result<Tensor> describe(std::string_view name) const override {
    const auto found = sources_.find(name);
    if (found == sources_.end())
      return Error{ErrorCode::kNotFound, fmt::format("{} has no tensor {}", model_.path(), name)};
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
  Status add(const std::string& name, const GgufTensor& tensor) {
    const std::string path = model_.path(tensor.part);
    const auto type = static_cast<GgmlType>(tensor.type);
    const int64_t width = tensor.shape.empty() ? 0 : tensor.shape.back();
    uint64_t elements = 1;
    for (const int64_t axis : tensor.shape) {
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(axis), &elements))
        return Error{ErrorCode::kCorrupt, fmt::format("{}: tensor {} is too large", path, name)};
    }
    const bool blocks = block_bits(type).has_value();
    if (blocks && (width % block_elements(type) != 0 || !name.ends_with(".weight"))) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: tensor {} has rows of {}, not a multiple of {}", path, name,
                               width, block_elements(type))};
    }
    const uint64_t bytes = elements > (uint64_t{1} << 48) ? elements : stored_bytes(type, elements);
    if (bytes > model_.files[tensor.part].size() - tensor.offset) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: tensor {} ends behind the end of the file: it is truncated",
                               path, name)};
    }
    weight_bytes_ += bytes;
    const Source source = {&tensor, blocks ? Part::kCodes : Part::kPlain};
    if (!sources_.emplace(name, source).second)
      return Error{ErrorCode::kCorrupt, fmt::format("{}: two tensors are {}", path, name)};
    if (!blocks) return {};
    const std::string module = name.substr(0, name.rfind('.'));
    sources_.emplace(module + ".scales", Source{&tensor, Part::kScales});
    if (block_mode(type) == QuantMode::kAffine)
      sources_.emplace(module + ".biases", Source{&tensor, Part::kBiases});
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
    return model_.files[tensor.part].map(
        tensor.offset + row_bytes * static_cast<uint64_t>(range.begin),
        row_bytes * static_cast<uint64_t>(range.end - range.begin));
  }

  static std::vector<std::byte> convert(const Source& source, std::span<const std::byte> blocks) {
    const auto type = static_cast<GgmlType>(source.tensor->type);
    if (source.part == Part::kCodes) return block_codes(type, blocks);
    return source.part == Part::kScales ? block_scales(type, blocks) : block_biases(type, blocks);
  }

  const GgufFiles model_;
  const Json config_;
  std::map<std::string, Source, std::less<>> sources_;
  uint64_t weight_bytes_ = 0;
};

Error in_file(const MappedFile& file, const Error& error) {
  return {error.code, fmt::format("{}: {}", file.path().string(), error.message)};
}

Result<GgufFiles> open_part(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto whole = file->map(0, file->size());
  if (!whole) return whole.error();
  auto gguf = Gguf::parse(whole->bytes, file->size());
  if (!gguf) return in_file(*file, gguf.error());
  GgufFiles out;
  out.gguf = *std::move(gguf);
  out.files.push_back(*std::move(file));
  return out;
}

/// Adds the other files of a model in several, which lie beside the first.
Status add_others(const std::filesystem::path& first, GgufFiles& model) {
  constexpr uint64_t kMostParts = 10'000;
  const uint64_t parts = model.gguf.number("split.count").value_or(1);
  if (parts <= 1) return {};
  const std::string name = first.filename().string();
  const std::string end = fmt::format("-00001-of-{:05}.gguf", parts);
  if (parts > kMostParts || !name.ends_with(end))
    return Error{ErrorCode::kInvalid,
                 fmt::format("{}: the model is in {} files: give the first, whose name ends in {}",
                             first.string(), parts, end)};
  const std::string stem = name.substr(0, name.size() - end.size());
  for (uint64_t part = 1; part < parts; ++part) {
    const auto path =
        first.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", stem, part + 1, parts);
    auto other = open_part(path);
    if (!other) return other.error();
    if (Status added = model.gguf.add_part(other->gguf, part); !added)
      return in_file(other->files[0], added.error());
    model.files.push_back(std::move(other->files[0]));
  }
  return {};
}

/// A list of F32 that the config is made of.
Result<std::vector<float>> read_floats(const GgufFiles& model, const std::string& name) {
  const auto found = model.gguf.tensors().find(name);
  if (found == model.gguf.tensors().end())
    return Error{ErrorCode::kCorrupt, fmt::format("{} is missing", name)};
  const GgufTensor& tensor = found->second;
  if (tensor.shape.size() != 1 || static_cast<GgmlType>(tensor.type) != GgmlType::kF32)
    return Error{ErrorCode::kCorrupt, fmt::format("{} is not a list of F32", name)};
  const auto mapped =
      model.files[tensor.part].map(tensor.offset, static_cast<uint64_t>(tensor.shape[0]) * 4);
  if (!mapped) return mapped.error();
  std::vector<float> values(static_cast<size_t>(tensor.shape[0]));
  std::memcpy(values.data(), mapped->bytes.data(), mapped->bytes.size());
  return values;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::filesystem::path& path) {
  auto model = open_part(path);
  if (!model) return model.error();
  if (Status added = add_others(path, *model); !added) return added.error();
  auto config = config_from_gguf(
      model->gguf, [&](const std::string& name) { return read_floats(*model, name); });
  if (!config) return in_file(model->files[0], config.error());
  const auto architecture = find_gguf_architecture(*model->gguf.text("general.architecture"));
  if (!architecture) return architecture.error();
  auto checkpoint = std::make_shared<GgufCheckpoint>(*std::move(model), *std::move(config));
  if (Status indexed = checkpoint->index(*architecture); !indexed) return indexed.error();
  auto converted = converted_from_gguf(std::move(checkpoint), *architecture);
  if (!converted)
    return Error{converted.error().code,
                 fmt::format("{}: {}", path.string(), converted.error().message)};
  return converted;
}

}  // namespace tandem::format
