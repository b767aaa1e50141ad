// What --device and --path mean on this machine, and what MLX must know before its first call.
#pragma once

#include "app/rank/options.h"
#include "base/result.h"

namespace tandem::app {

/// Replaces "auto" in options.device and options.path: the GPU where there is one (and the fast
/// path, which runs on the CPU, was not asked for by name), and the path of the device.
///
/// Errors: kUnsupported, with what to choose instead; for options.deterministic also where a row's
/// bits depend on the number of rows, or a sum on where it lies in a message: anywhere but on the
/// fast path with our own transports. kInvalid for a CPU level that this machine does not run.
Status resolve_device(RankOptions& options, bool has_gpu);

/// The same for this machine; bounds options.memory_bytes by what the GPU has.
Status resolve_device(RankOptions& options);

/// Bytes of memory of the chosen device. Requires resolved options.
uint64_t device_memory(const RankOptions& options);

/// Settings that MLX reads from the environment, where the user has not set them: products of
/// float32 are float32 (no TF32), and compiled GPU kernels lie in the user's own cache, not in a
/// shared folder. Before any other thread and any MLX call.
void set_mlx_environment();

}  // namespace tandem::app
