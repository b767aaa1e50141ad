// MLX's own distributed backends beside our transport: configured, started, and their failures
// mapped to errors that say what to do.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tandem::tensor {

namespace mx = mlx::core;

/// Ring: TCP, for comparison. Jaccl: RDMA over Thunderbolt between Macs. Nccl: NVIDIA GPUs. Mpi: an
/// installed MPI. None of them authenticates, has deadlines or can be used again after an error: a
/// rank on them is expendable, and its group is ended by ending the process.
enum class Backend : uint8_t { kRing, kJaccl, kNccl, kMpi };

/// What a backend needs to know. Fields of other backends must be empty.
struct BackendSettings {
  Backend backend = Backend::kRing;
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string hostfile = {};     // ring: file with [["ip:port", …] for each rank]
  std::string devices = {};      // jaccl: file with each rank's RDMA devices to every other
  std::string coordinator = {};  // jaccl and nccl: "ip:port" of rank 0
  bool jaccl_ring = false;       // jaccl: neighbours only, instead of a mesh
  std::string library = {};      // mpi: path of libmpi, if not the system's
};

/// "ring", "jaccl", "nccl", "mpi".
const char* name(Backend backend);

/// Whether this build of MLX, on this machine, has the backend.
bool available(Backend backend);

/// The same as a status. Errors: kUnsupported, with what to do.
Status check_available(Backend backend);

/// The variables that MLX reads. kInvalid names the missing or superfluous field.
Result<std::vector<std::pair<std::string, std::string>>> environment(
    const BackendSettings& settings);

/// Puts the settings into this process's environment and joins the group. Once a process, on the
/// thread that will evaluate, while no other thread reads the environment.
///
/// Errors  kUnsupported  not in this build or on this hardware, and what to do
///         kInvalid      settings, or a file that MLX cannot use
///         kUnavailable  the other ranks were not reached
/// Blocks  until the others come, with MLX's own limits (ring: for ever if a neighbour never dials)
Result<mx::distributed::Group> start(const BackendSettings& settings);

}  // namespace tandem::tensor
