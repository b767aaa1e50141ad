// What --comm means, and what goes with it.
#pragma once

#include <string>
#include <vector>

#include "app/session_options.h"
#include "base/result.h"
#include "plan/frames.h"

namespace tandem::app {

/// auto: shared memory, since all ranks are on this machine.
plan::CommKind comm_kind(const SessionOptions& options);

/// What MLX's own backends cannot do, and options of one that is not used. Errors: kInvalid, with
/// what to choose instead. What a machine lacks is found by the rank, which links MLX.
Status check_comm(const SessionOptions& options);

/// Path of the mpirun that starts the ranks with --comm mpi; empty with another --comm, and where
/// PATH has none.
std::string find_mpirun(const SessionOptions& options);

/// What a rank must be told about its backend; nothing for our transports.
std::vector<std::string> backend_arguments(const SessionOptions& options);

}  // namespace tandem::app
