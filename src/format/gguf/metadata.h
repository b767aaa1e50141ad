// What a GGUF file's header says about its model.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"

namespace tandem::format {

/// Reads a tensor of F32; an error names it.
using GgufFloats = std::function<Result<std::vector<float>>(const std::string& name)>;

/// Metadata under keys behind the architecture's name: "block_count" for "llama.block_count".
class GgufMetadata {
 public:
  /// Requires both to outlive it.
  GgufMetadata(const Gguf& gguf, std::string architecture, GgufFloats read)
      : gguf_(gguf), prefix_(std::move(architecture) + "."), read_(std::move(read)) {}

  std::optional<uint64_t> number(std::string_view key) const { return gguf_.number(full(key)); }
  std::optional<double> real(std::string_view key) const { return gguf_.real(full(key)); }
  std::optional<bool> flag(std::string_view key) const { return gguf_.boolean(full(key)); }
  const std::string* text(std::string_view key) const { return gguf_.text(full(key)); }
  /// Values of a list, of truth values 0 and 1; empty where there is none.
  std::vector<int64_t> list(std::string_view key) const { return gguf_.integers(full(key)); }

  /// A number, a flag or a text as config.json has it; null where there is none. 0 counts as none:
  /// writers put it for what a model lacks.
  nlohmann::json value(std::string_view key) const;

  /// The number, or the largest of a list of one for each layer; nullopt where there is neither.
  std::optional<uint64_t> largest(std::string_view key) const;

  /// A tensor's rows; 0 where the file lacks it.
  int64_t rows(std::string_view tensor) const;
  bool has(std::string_view tensor) const { return gguf_.tensors().contains(tensor); }
  /// Whether layer i has a tensor, such as "attn_v.weight".
  bool has(uint64_t layer, std::string_view tensor) const;
  Result<std::vector<float>> floats(const std::string& tensor) const { return read_(tensor); }

  /// Layers of the model, without those behind them that predict further tokens.
  uint64_t layers() const;
  /// The key as the file has it.
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  const Gguf& gguf() const { return gguf_; }

 private:
  const Gguf& gguf_;
  std::string prefix_;
  GgufFloats read_;
};

}  // namespace tandem::format
