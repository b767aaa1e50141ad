// How a rank comes into a group of MLX's own backends (ring, JACCL, NCCL, MPI).
#pragma once

#include <optional>
#include <string>

#include "app/rank/options.h"
#include "base/result.h"
#include "comm/transport.h"
#include "plan/frames.h"
#include "tensor/backend.h"

namespace tandem::app {

/// The GPU of a rank: the rank-th of those that CUDA_VISIBLE_DEVICES lists (null: all), each rank
/// having one of its own, as NCCL needs. Nothing when the list ends before.
std::optional<std::string> gpu_of_rank(const char* visible, uint32_t rank);

/// What options.backend must find in the environment before any other thread and any MLX call: with
/// NCCL only this rank's GPU, with MPI where its library is.
void set_backend_environment(const RankOptions& options);

/// Whether options.backend can be used here, so that what a machine lacks is known before weights
/// are read. Requires resolved options. Errors: kUnsupported, with what to do.
Status check_backend(const RankOptions& options);

/// Starts options.backend with the ranks of `meeting`, over which they tell each other their
/// addresses: all have come that far. Once a process, on the engine thread. Errors: kInvalid for a
/// group of another kind; of the meeting and of tensor::start().
Result<tensor::mx::distributed::Group> join_backend(const RankOptions& options,
                                                    plan::CommKind kind,
                                                    comm::Transport& meeting);

}  // namespace tandem::app
