// Tensors of random numbers in memory, which a family's checkpoint is made of
// (random_checkpoint_test.h).
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "format/checkpoint.h"
#include "model/random_options_test.h"

namespace tandem::model {

/// Numbers are drawn from their tensors' names. Counts what is read.
class RandomTensors : public format::Checkpoint {
 public:
  const nlohmann::json& config() const override { return config_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) out.push_back(name);
    return out;
  }

  bool has(std::string_view name) const override { return tensors_.contains(name); }

  Result<format::Tensor> describe(std::string_view name) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return Error{ErrorCode::kNotFound, fmt::format("no tensor {}", name)};
    return it->second;
  }

  Result<format::Tensor> tensor(std::string_view name,
                                std::optional<format::RowRange> rows = {}) const override {
    auto out = describe(name);
    if (!out) return out;
    if (rows && rows->end > out->shape[0])
      return Error{ErrorCode::kCorrupt, fmt::format("{}: rows {} to {} of {}", name, rows->begin,
                                                    rows->end, out->shape[0])};
    if (rows) {
      const size_t row = out->bytes.size() / static_cast<size_t>(out->shape[0]);
      const auto count = static_cast<size_t>(rows->end - rows->begin);
      out->bytes = out->bytes.subspan(static_cast<size_t>(rows->begin) * row, count * row);
      out->shape[0] = rows->end - rows->begin;
    }
    bytes_read_ += out->bytes.size();
    return out;
  }

  Result<std::optional<format::Quantization>> quantization(std::string_view module) const override {
    if (!has(fmt::format("{}.scales", module))) return std::optional<format::Quantization>();
    return std::optional(format::Quantization{options_.bits, options_.group, options_.mode});
  }

  uint64_t weight_bytes() const override {
    uint64_t sum = 0;
    for (const auto& [name, tensor] : tensors_) sum += tensor.bytes.size();
    return sum;
  }
  std::filesystem::path directory() const override { return {}; }

  /// Bytes of all tensors and rows asked for so far.
  uint64_t bytes_read() const { return bytes_read_; }
  /// Adds a tensor that no model uses.
  void add_stray(const std::string& name) { put_floats(name, {4}, 1, 0); }
  void remove(const std::string& name) { tensors_.erase(name); }
  /// Puts a number in the place of element `at` of a tensor of floats.
  void put(const std::string& name, size_t at, float value) {
    format::Tensor& tensor = tensors_.at(name);
    auto copy = std::make_shared<std::vector<std::byte>>(tensor.bytes.begin(), tensor.bytes.end());
    std::memcpy(copy->data() + at * sizeof(float), &value, sizeof(float));
    tensor.bytes = *copy;
    tensor.owner = std::move(copy);
  }
  /// Puts a byte in the place of one of a tensor's.
  void put_byte(const std::string& name, size_t at, uint8_t value) {
    format::Tensor& tensor = tensors_.at(name);
    auto copy = std::make_shared<std::vector<std::byte>>(tensor.bytes.begin(), tensor.bytes.end());
    copy->at(at) = std::byte{value};
    tensor.bytes = *copy;
    tensor.owner = std::move(copy);
  }
  /// Calls a tensor's elements ones of another type of the same size.
  void retype(const std::string& name, format::Dtype dtype) { tensors_.at(name).dtype = dtype; }
  /// Leaves only so many columns of a matrix, counted from the first element.
  void narrow(const std::string& name, int64_t columns) {
    format::Tensor& tensor = tensors_.at(name);
    tensor.shape[1] = columns;
    tensor.bytes = tensor.bytes.first(static_cast<size_t>(tensor.shape[0] * columns) * 4);
  }
  /// Leaves only so many rows of a matrix.
  void shorten(const std::string& name, int64_t rows) { tensors_.at(name).shape[0] = rows; }
  /// Changes a key of the config.
  void set(const char* key, nlohmann::json value) { config_[key] = std::move(value); }
  /// Takes a key out of the config.
  void forget(const char* key) { config_.erase(key); }

 protected:
  explicit RandomTensors(const RandomOptions& o) : options_(o) {}

  void put_matrix(
      const std::string& module, uint32_t rows, uint32_t columns, float gain, bool has_bias) {
    const float deviation = gain / std::sqrt(static_cast<float>(columns));
    if (has_bias) put_floats(module + ".bias", {rows}, 0.1F, 0);
    if (options_.bits == 0) return put_floats(module + ".weight", {rows, columns}, deviation, 0);
    const auto groups = columns / static_cast<uint32_t>(options_.group);
    const float step = deviation * 4 / static_cast<float>(1 << options_.bits);
    put_words(module + ".weight", {rows, columns * static_cast<uint32_t>(options_.bits) / 32});
    if (options_.mode != format::QuantMode::kAffine)
      return put_scales(module + ".scales", {rows, groups}, deviation);
    put_floats(module + ".scales", {rows, groups}, step * 0.1F, step);
    put_floats(module + ".biases", {rows, groups}, step,
               -step * static_cast<float>((1 << options_.bits) - 1) / 2);
  }

  void put_floats(const std::string& name,
                  std::vector<int64_t> shape,
                  float deviation,
                  float mean) {
    const bool is_half = options_.is_in_halves;
    auto data = storage(name, shape, is_half ? format::Dtype::kBF16 : format::Dtype::kF32);
    const size_t size = is_half ? 2 : 4;
    std::mt19937_64 random(std::hash<std::string>()(name));
    std::normal_distribution<float> normal(mean, deviation);
    for (size_t i = 0; i < data.size() / size; ++i) {
      const float value = normal(random);  // of which bfloat16 is the upper half
      std::memcpy(data.data() + size * i, reinterpret_cast<const char*>(&value) + 4 - size, size);
    }
    flip(name, data);
  }

  /// Scales in bytes that make weights of about this deviation out of random codes.
  void put_scales(const std::string& name, std::vector<int64_t> shape, float deviation) {
    auto data = storage(name, shape, format::Dtype::kU8);
    std::mt19937_64 random(std::hash<std::string>()(name));
    const float size_of_codes = options_.mode == format::QuantMode::kMxfp8 ? 130 : 3;
    const int power = static_cast<int>(std::lround(std::log2(deviation / size_of_codes)));
    const bool is_e4m3 = options_.mode == format::QuantMode::kNvfp4;
    for (std::byte& b : data)
      b = static_cast<std::byte>(is_e4m3 ? (7 + power) * 8 + static_cast<int>(random() & 7U)
                                         : 126 + power + static_cast<int>(random() & 1U));
  }

  void put_words(const std::string& name, std::vector<int64_t> shape) {
    auto data = storage(name, shape, format::Dtype::kU32);
    std::mt19937_64 random(std::hash<std::string>()(name));
    for (std::byte& b : data) {
      b = static_cast<std::byte>(random() & 255U);
      const bool is_nan = (b & std::byte{0x7f}) == std::byte{0x7f};
      if (is_nan && options_.mode == format::QuantMode::kMxfp8) b = std::byte{0};
    }
    flip(name, data);
  }

  std::span<std::byte> storage(const std::string& name,
                               std::vector<int64_t> shape,
                               format::Dtype dtype) {
    size_t bytes = format::size_of(dtype);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    auto data = std::make_shared<std::vector<std::byte>>(bytes);
    const std::span<std::byte> out(*data);
    tensors_[name] = {
        .dtype = dtype, .shape = std::move(shape), .bytes = out, .owner = std::move(data)};
    return out;
  }

  void flip(const std::string& name, std::span<std::byte> data) const {
    if (name == options_.flipped) data[data.size() / 2 + 2] ^= std::byte{0x40};
  }

  RandomOptions options_;
  nlohmann::json config_;
  std::map<std::string, format::Tensor, std::less<>> tensors_;
  mutable uint64_t bytes_read_ = 0;
};

}  // namespace tandem::model
