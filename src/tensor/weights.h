// A named place in a checkpoint, and what this rank needs to load from there.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "format/checkpoint.h"
#include "tensor/context.h"
#include "topology/placement.h"

namespace tandem::tensor {

/// A checkpoint that lacks or misshapes what a model needs; thrown by blocks under construction,
/// turned into a Result where the model is loaded.
class LoadFailure : public std::runtime_error {
 public:
  explicit LoadFailure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// A cursor over a checkpoint: `w / "self_attn" / "q_proj"` names a module as the checkpoint does.
/// Cheap to copy; all cursors of one checkpoint share a list of what was used. Engine thread;
/// raw(), has() and quantization() any thread. Member functions that load throw LoadFailure.
class Weights {
 public:
  Weights(std::shared_ptr<const format::Checkpoint> checkpoint,
          Context context,
          topology::ModelShape shape,
          topology::Part part);

  Weights operator/(std::string_view name) const;
  Weights operator/(uint32_t index) const { return *this / std::to_string(index); }

  const std::string& path() const { return path_; }
  const Context& context() const;
  const topology::ModelShape& shape() const;
  const topology::Part& part() const;

  bool has(std::string_view leaf) const;
  /// Whether the checkpoint computes in float32 (format/float_type.h).
  bool is_in_float32() const;
  /// How the module here is quantized; nullopt: it is dense.
  std::optional<format::Quantization> quantization() const;
  /// A tensor as stored, or some of its rows.
  format::Tensor raw(std::string_view leaf,
                     std::optional<topology::Range> rows = std::nullopt) const;
  /// Elements [begin, end) of a vector as float32; all of them by default. All must be finite.
  std::vector<float> vector(std::string_view leaf,
                            std::optional<topology::Range> range = std::nullopt) const;

  /// Declares everything below this place, or one tensor, as not needed here.
  void skip() const;
  void skip(std::string_view leaf) const;
  /// An error that names the tensors nothing asked for: the model is not what its config says.
  Status check_all_used() const;

  /// Adds to the count of bytes that the rank holds.
  void count_bytes(uint64_t bytes) const;
  uint64_t bytes() const;

 private:
  struct Shared;
  Weights(std::shared_ptr<Shared> shared, std::string path)
      : shared_(std::move(shared)), path_(std::move(path)) {}
  std::string name_of(std::string_view leaf) const;

  std::shared_ptr<Shared> shared_;  // shared: the cursors of one checkpoint
  std::string path_;
};

}  // namespace tandem::tensor
