// A checkpoint's header alone, for the tests of this folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/checkpoint.h"

namespace tandem::app {

/// A checkpoint of which only the header is asked for.
class Header final : public format::Checkpoint {
 public:
  explicit Header(nlohmann::json config,
                  std::optional<format::Quantization> quantization = std::nullopt)
      : config_(std::move(config)), quantization_(quantization) {}
  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : tensors_) result.push_back(name);
    return result;
  }
  bool has(std::string_view /*name*/) const override { return false; }
  Result<format::Tensor> describe(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Result<format::Tensor>(missing()) : found->second;
  }
  Result<format::Tensor> tensor(std::string_view /*name*/,
                                std::optional<format::RowRange> /*rows*/) const override {
    return missing();
  }
  Result<std::optional<format::Quantization>> quantization(
      std::string_view /*module*/) const override {
    return quantization_;
  }
  uint64_t weight_bytes() const override { return 0; }
  std::filesystem::path directory() const override { return {}; }

  Header& put(const std::string& name, format::Dtype dtype, std::vector<int64_t> shape) {
    tensors_[name] = {.dtype = dtype, .shape = std::move(shape), .bytes = {}, .owner = nullptr};
    return *this;
  }

 private:
  static Error missing() { return {ErrorCode::kNotFound, "only a header"}; }
  nlohmann::json config_;
  std::map<std::string, format::Tensor, std::less<>> tensors_;
  std::optional<format::Quantization> quantization_;
};

}  // namespace tandem::app
