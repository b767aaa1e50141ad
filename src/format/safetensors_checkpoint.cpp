#include "format/safetensors_checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "format/mapped_file.h"
#include "format/safetensors.h"

namespace tandem::format {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Python writes Infinity, which is no JSON, where a limit is none: the largest number stands for
/// it.
std::string without_infinity(std::string text) {
  constexpr std::string_view kInfinity = "Infinity", kLargest = "1.7976931348623157e308";
  bool is_quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_quoted && text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      is_quoted = !is_quoted;
    else if (!is_quoted && std::string_view(text).substr(at).starts_with(kInfinity))
      text.replace(at, kInfinity.size(), kLargest);
  }
  return text;
}

Result<Json> read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{ErrorCode::kNotFound, fmt::format("cannot read {}", path.string())};
  std::string text{std::istreambuf_iterator<char>(in), {}};
  Json json = Json::parse(without_infinity(std::move(text)), nullptr, false);
  if (!json.is_object())
    return Error{ErrorCode::kCorrupt, fmt::format("{} is not a JSON object", path.string())};
  return json;
}

struct Location {
  size_t file = 0;
  SafetensorsEntry entry;
};

class SafetensorsCheckpoint final : public Checkpoint {
 public:
  SafetensorsCheckpoint(fs::path directory, Json config)
      : directory_(std::move(directory)), config_(std::move(config)) {}

  Status add_file(const fs::path& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    auto header = read_safetensors_header(*file);
    if (!header) return header.error();
    for (auto& [name, entry] : *header) {
      if (tensors_.contains(name)) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: tensor {} is in two files", path.string(), name)};
      }
      weight_bytes_ += entry.bytes;
      tensors_.emplace(name, Location{files_.size(), std::move(entry)});
    }
    files_.push_back(std::move(*file));
    return {};
  }

  const Json& config() const override { return config_; }
  bool has(std::string_view name) const override { return tensors_.find(name) != tensors_.end(); }
  uint64_t weight_bytes() const override { return weight_bytes_; }
  fs::path directory() const override { return directory_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, location] : tensors_) result.push_back(name);
    return result;
  }

  Result<Tensor> describe(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{} has no tensor {}", directory_.string(), name)};
    }
    return Tensor{found->second.entry.dtype, found->second.entry.shape, {}, nullptr};
  }

  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows) const override {
    auto tensor = describe(name);
    if (!tensor) return tensor;
    const Location& location = tensors_.find(name)->second;
    uint64_t offset = location.entry.offset;
    uint64_t bytes = location.entry.bytes;
    if (rows) {
      const int64_t all = tensor->shape.empty() ? 0 : tensor->shape[0];
      if (rows->begin < 0 || rows->begin > rows->end || rows->end > all) {
        return Error{ErrorCode::kInvalid,
                     fmt::format("{}: rows {} to {} of {}", name, rows->begin, rows->end, all)};
      }
      const uint64_t row_bytes = all == 0 ? 0 : bytes / static_cast<uint64_t>(all);
      offset += row_bytes * static_cast<uint64_t>(rows->begin);
      bytes = row_bytes * static_cast<uint64_t>(rows->end - rows->begin);
      tensor->shape[0] = rows->end - rows->begin;
    }
    auto mapping = files_[location.file].map(offset, bytes);
    if (!mapping) return mapping.error();
    tensor->bytes = mapping->bytes;
    tensor->owner = std::move(mapping->owner);
    return tensor;
  }

  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    return quantization_from_config(config_, module, has(fmt::format("{}.scales", module)));
  }

 private:
  const fs::path directory_;
  const Json config_;
  std::vector<MappedFile> files_;
  std::map<std::string, Location, std::less<>> tensors_;
  uint64_t weight_bytes_ = 0;
};

/// The files that hold the model, as the index names them, else every model*.safetensors.
Result<std::vector<fs::path>> weight_files(const fs::path& directory) {
  std::set<fs::path> files;
  const fs::path index = directory / "model.safetensors.index.json";
  std::error_code ignored;
  if (fs::exists(index, ignored)) {
    auto json = read_json(index);
    if (!json) return json.error();
    if (!json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} has no weight_map", index.string())};
    }
    for (const auto& [name, file] : (*json)["weight_map"].items()) {
      const std::string plain = file.is_string() ? file.get<std::string>() : "";
      if (plain.empty() || fs::path(plain).filename() != plain) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: {} is placed in {}, which is no file name", index.string(),
                                 name, file.dump())};
      }
      files.insert(directory / plain);
    }
  }
  // A stale index is met when a single model.safetensors lies beside it: the file that exists wins.
  const bool stale =
      !files.empty() && std::none_of(files.begin(), files.end(),
                                     [&](const fs::path& f) { return fs::exists(f, ignored); });
  if (files.empty() || stale) {
    std::set<fs::path> present;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with("model") && file.ends_with(".safetensors")) present.insert(entry.path());
    }
    if (!present.empty()) files = std::move(present);
  }
  if (files.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds no model*.safetensors file", directory.string())};
  }
  return std::vector<fs::path>(files.begin(), files.end());
}

/// One of the numbers that a module may be quantized with; `otherwise` when the entry has no `key`.
Result<int> read_one_of(const Json& entry,
                        std::string_view module,
                        const char* key,
                        int otherwise,
                        const std::vector<int>& allowed) {
  const auto value = entry.find(key);
  if (value == entry.end()) return otherwise;
  if (value->is_number_integer()) {
    const auto number = value->get<int64_t>();
    for (const int one : allowed)
      if (number == one) return one;
  }
  return Error{value->is_number_integer() ? ErrorCode::kUnsupported : ErrorCode::kCorrupt,
               fmt::format("config: quantization.{} of {} should be one of {}, is {}: correct "
                           "config.json or convert the model again",
                           key, module, fmt::join(allowed, ", "), value->dump())};
}

/// What there are kernels for in a mode; those that an entry need not name.
struct Widths {
  int usual_bits;
  std::vector<int> bits;
  int usual_group;
  std::vector<int> groups;
};

/// By QuantMode.
const Widths& widths_of(QuantMode mode) {
  static const std::array<Widths, 4> kAll = {{{4, {2, 3, 4, 5, 6, 8}, 64, {32, 64, 128}},
                                              {4, {4}, 32, {32}},
                                              {8, {8}, 32, {32}},
                                              {4, {4}, 16, {16}}}};
  return kAll[static_cast<size_t>(mode)];
}

/// Affine unless the entry says otherwise: that of one module does not follow the whole model's, as
/// in MLX.
Result<QuantMode> read_mode(const Json& entry, std::string_view module) {
  const Json mode = entry.value("mode", Json("affine"));
  const auto known =
      mode.is_string() ? quant_mode_from_name(mode.get<std::string>()) : std::nullopt;
  if (known) return *known;
  return Error{mode.is_string() ? ErrorCode::kUnsupported : ErrorCode::kCorrupt,
               fmt::format("config: quantization.mode of {} is {}; affine, mxfp4, mxfp8 and nvfp4 "
                           "are supported: convert the model with one of them",
                           module, mode.dump())};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_safetensors_checkpoint(const fs::path& directory) {
  auto config = read_json(directory / "config.json");
  if (!config && config.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no model in {}: expected a config.json beside safetensors, "
                             "and it cannot be read; a .gguf file is named itself",
                             directory.string())};
  }
  if (!config) return config.error();
  const auto files = weight_files(directory);
  if (!files) return files.error();
  auto checkpoint = std::make_shared<SafetensorsCheckpoint>(directory, std::move(*config));
  for (const fs::path& file : *files) {
    const Status added = checkpoint->add_file(file);
    if (!added) return added.error();
  }
  return std::shared_ptr<const Checkpoint>(std::move(checkpoint));
}

Result<std::optional<Quantization>> quantization_from_config(const Json& config,
                                                             std::string_view module,
                                                             bool has_scales) {
  if (!has_scales) return std::optional<Quantization>();
  const auto whole = config.find("quantization");
  if (whole == config.end() || !whole->is_object()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} has scales, but config.json has no \"quantization\"", module)};
  }
  const auto own = whole->find(std::string(module));
  const bool has_own = own != whole->end() && *own != true;  // true: as the whole model
  if (has_own && !own->is_object()) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("config: quantization of {} should be an object such as {{\"bits\": 4, "
                    "\"group_size\": 64}}, is {}, and the checkpoint has its scales: "
                    "correct config.json or convert the model again",
                    module, own->dump())};
  }
  const Json& entry = has_own ? *own : *whole;
  const auto mode = read_mode(entry, module);
  if (!mode) return mode.error();
  const Widths& widths = widths_of(*mode);
  const auto bits = read_one_of(entry, module, "bits", widths.usual_bits, widths.bits);
  if (!bits) return bits.error();
  const auto group_size =
      read_one_of(entry, module, "group_size", widths.usual_group, widths.groups);
  if (!group_size) return group_size.error();
  return std::optional<Quantization>({.bits = *bits, .group_size = *group_size, .mode = *mode});
}

}  // namespace tandem::format
