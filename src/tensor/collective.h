// Sums over ranks as nodes of the graph.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>

#include "comm/transport.h"
#include "tensor/cpu_op.h"
#include "topology/placement.h"

namespace tandem::tensor {

/// A failed exchange, thrown out of the evaluation of a step.
class CommFailure : public std::runtime_error {
 public:
  explicit CommFailure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The ranks that share each layer. Blocks hold it for life; the transport below changes with each
/// epoch. Engine thread; every rank must build and run the same nodes in the same order.
class Collective {
 public:
  Collective(uint32_t rank, uint32_t size) : rank_(rank), size_(size) {}

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }

  /// Requires `transport` (borrowed) to have this rank and size. Null: every exchange fails.
  void set_transport(comm::Transport* transport);

  /// Exchanges go through MLX's distributed operations instead, on whatever device the group
  /// serves.
  void set_group(std::optional<mx::distributed::Group> group) { group_ = std::move(group); }

  /// Element by element in rank order, in float32. [rows, width] in, the same out.
  array all_sum(const array& x) const;

  /// Puts the columns of all ranks beside each other on rank 0: [rows, columns[rank].size()] in,
  /// [rows, width of all] out there, an empty array elsewhere. float32.
  array gather_columns(const array& x, const std::vector<topology::Range>& columns) const;

 private:
  comm::Transport& transport() const;
  array gather_by_group(const array& x, const std::vector<topology::Range>& columns) const;

  uint32_t rank_;
  uint32_t size_;
  comm::Transport* transport_ = nullptr;
  std::optional<mx::distributed::Group> group_;
};

}  // namespace tandem::tensor
