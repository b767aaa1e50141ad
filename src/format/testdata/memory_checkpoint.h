// A checkpoint in memory, for the tests of layouts.
#pragma once

#include <cstring>
#include <map>

#include "format/checkpoint.h"
#include "format/safetensors_checkpoint.h"

namespace tandem::format {

class MemoryCheckpoint final : public Checkpoint {
 public:
  explicit MemoryCheckpoint(nlohmann::json config) : config_(std::move(config)) {}

  /// Adds a tensor of these elements, whose bytes it has as they are.
  template <class T>
  void put(const std::string& name,
           Dtype dtype,
           std::vector<int64_t> shape,
           const std::vector<T>& elements) {
    std::vector<std::byte> bytes(elements.size() * sizeof(T));
    std::memcpy(bytes.data(), elements.data(), bytes.size());
    tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  /// Gives a tensor another shape than its bytes have.
  void reshape(const std::string& name, std::vector<int64_t> shape) {
    tensors_.at(name).shape = std::move(shape);
  }
  nlohmann::json& edit_config() { return config_; }

  const nlohmann::json& config() const override { return config_; }
  bool has(std::string_view name) const override { return tensors_.contains(name); }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) out.push_back(name);
    return out;
  }
  Result<Tensor> describe(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      return Error{ErrorCode::kNotFound, fmt::format("no tensor {}", name)};
    return Tensor{found->second.dtype, found->second.shape, {}, nullptr};
  }
  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows = {}) const override {
    auto out = describe(name);
    if (!out) return out;
    out->bytes = tensors_.find(name)->second.bytes;
    if (!rows || out->bytes.empty()) return out;
    const size_t row = out->bytes.size() / static_cast<size_t>(out->shape[0]);
    out->bytes = out->bytes.subspan(static_cast<size_t>(rows->begin) * row,
                                    static_cast<size_t>(rows->end - rows->begin) * row);
    out->shape[0] = rows->end - rows->begin;
    return out;
  }
  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    return quantization_from_config(config_, module, has(fmt::format("{}.scales", module)));
  }
  uint64_t weight_bytes() const override {
    uint64_t sum = 0;
    for (const auto& [name, tensor] : tensors_) sum += tensor.bytes.size();
    return sum;
  }
  std::filesystem::path directory() const override { return {}; }

 private:
  struct Kept {
    Dtype dtype = Dtype::kF32;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  nlohmann::json config_;
  std::map<std::string, Kept, std::less<>> tensors_;
};

/// Elements of a tensor.
template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  std::vector<T> out(tensor.bytes.size() / sizeof(T));
  std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

}  // namespace tandem::format
