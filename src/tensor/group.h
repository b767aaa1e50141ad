// Our transport as an MLX distributed group: mx::distributed::all_sum and its kin run on it.
#pragma once

#include <mlx/mlx.h>

#include <memory>

#include "comm/transport.h"

namespace tandem::tensor {

namespace mx = mlx::core;

/// A group that runs on a CPU stream of the calling thread.
///
/// Supports  all_sum of float32, bfloat16 and float16; all_gather, send and recv of every type;
///           sum_scatter of float32 by rows; split
/// Errors    the waiting thread gets a std::runtime_error that has lost its kind on the way through
///           MLX: status_of() tells it. What is not supported throws std::invalid_argument from
///           eval
/// Requires  every rank evaluates the same operations in the same order: chain them by data or by
///           mx::depends. split() with nothing pending. One thread builds and evaluates
///
/// `transport` is shared with the tasks in flight.
mx::distributed::Group make_group(std::shared_ptr<comm::Transport> transport);

/// The first error of a group of ours, whose thread is not in a collective now. Groups of MLX's own
/// backends have none to tell.
Status status_of(const mx::distributed::Group& group);

}  // namespace tandem::tensor
