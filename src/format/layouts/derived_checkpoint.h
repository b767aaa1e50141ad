// A checkpoint in which some tensors are made of others when they are asked for.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "format/checkpoint.h"

namespace tandem::format {

/// A tensor that is made of what the checkpoint holds.
struct DerivedTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape = {};
  /// Rows of the first axis, inside the shape. Any thread.
  std::function<Result<Tensor>(RowRange rows)> make = {};
};

/// What a layout shows in place of the tensors that it keeps.
struct Derivations {
  std::map<std::string, DerivedTensor, std::less<>> tensors;
  std::map<std::string, Quantization, std::less<>> quantizations;  // of modules, by name
  std::set<std::string, std::less<>> hidden;                       // that nobody else should see
  std::string notice = {};                                         // what a user should know of it

  bool is_empty() const { return tensors.empty() && hidden.empty(); }
};

/// `from` with these tensors and without the hidden ones. `from` itself where there are neither.
std::shared_ptr<const Checkpoint> derived(std::shared_ptr<const Checkpoint> from,
                                          Derivations derivations);

/// A tensor of its own and its bytes, to be written before anyone else has it.
struct NewTensor {
  NewTensor(Dtype dtype, std::vector<int64_t> shape);

  Tensor tensor;
  std::span<std::byte> bytes;
};

/// kInvalid unless the rows are inside a first axis of `all`; names the tensor.
Status check_rows(std::string_view name, const RowRange& rows, int64_t all);

/// Runs part(begin, end) over [0, items), on several threads where `elements`, the numbers that all
/// of it touches, are so many that this is faster.
void over_threads(size_t items,
                  size_t elements,
                  const std::function<void(size_t begin, size_t end)>& part);

}  // namespace tandem::format
