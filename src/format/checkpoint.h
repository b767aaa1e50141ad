// A model on disk, whatever its container: hyper-parameters in the spelling of config.json and
// tensors under the names of the Hugging Face layout.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/tensor.h"

namespace tandem::format {

class Gguf;

/// Immutable after open(); thread-safe. Quantized modules appear as `<module>.weight` (u32
/// words, [out, in * bits / 32], codes LSB first), `<module>.scales` and, of affine ones,
/// `<module>.biases` ([out, in / group_size]).
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  /// config.json, or its equivalent made from GGUF metadata.
  virtual const nlohmann::json& config() const = 0;

  /// Every tensor, sorted.
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(std::string_view name) const = 0;

  /// Type and shape without touching data. kNotFound names the tensor and the checkpoint.
  virtual Result<Tensor> describe(std::string_view name) const = 0;

  /// Maps (or, for packed formats, converts) a tensor, or only some of its rows: nothing else is
  /// read.
  virtual Result<Tensor> tensor(std::string_view name,
                                std::optional<RowRange> rows = std::nullopt) const = 0;

  /// How a module is quantized; nullopt when it has no scales. kUnsupported for modes, bits
  /// or groups that there are no kernels for; kCorrupt for what is of another type.
  virtual Result<std::optional<Quantization>> quantization(std::string_view module) const = 0;

  /// Bytes of all tensors as stored.
  virtual uint64_t weight_bytes() const = 0;

  /// Folder that holds tokenizer files; empty for a GGUF file, which has its tokenizer inside.
  virtual std::filesystem::path directory() const = 0;
  /// What a user should know who serves it; empty when there is nothing to say.
  virtual std::string notice() const { return {}; }
  /// The GGUF metadata; null for other containers.
  virtual const Gguf* gguf() const { return nullptr; }
};

/// Opens a folder with config.json and safetensors (single, sharded, with or without index) or a
/// .gguf file, as as_read() shows it. Errors name the file: missing, truncated, not matching its
/// index, of an unknown format.
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::filesystem::path& path);

/// What a model reads of a checkpoint in safetensors: the language model of one that also sees or
/// hears (text_model.h), in the forms above whatever it was published in (layouts/published.h,
/// layouts/stacked_experts.h), under the names that most families use (layouts/backbone.h). Errors:
/// theirs.
Result<std::shared_ptr<const Checkpoint>> as_read(std::shared_ptr<const Checkpoint> stored);

}  // namespace tandem::format
