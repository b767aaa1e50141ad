#include "app/rank/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/cache_folder.h"
#include "kernels/cpu_level.h"
#include "tensor/device.h"

namespace tandem::app {
namespace {

namespace mx = mlx::core;

/// Of a GPU's memory, what weights and pages may take; the rest is for activations and kernels.
constexpr double kShareOfGpu = 0.8;

uint64_t gpu_memory() {
  const auto& info = mx::device_info(mx::Device(mx::Device::gpu));
  for (const char* key : {"total_memory", "memory_size"})
    if (const auto found = info.find(key); found != info.end())
      if (const auto* bytes = std::get_if<size_t>(&found->second)) return *bytes;
  return 0;
}

uint64_t machine_memory() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// kInvalid for the name of a level that this machine does not run.
Status check_cpu_level(const std::string& name) {
  std::vector<std::string_view> names = {"auto"};
  for (const kernels::CpuLevel level : kernels::cpu_levels())
    names.emplace_back(kernels::name(level));
  if (std::ranges::find(names, name) != names.end()) return {};
  return Error{ErrorCode::kInvalid,
               fmt::format("this machine does not run --cpu-level {}: choose {}", name,
                           fmt::join(names, ", "))};
}

}  // namespace

Status resolve_device(RankOptions& options, bool has_gpu) {
  if (options.device == "auto") options.device = has_gpu && options.path != "fast" ? "gpu" : "cpu";
  if (options.device == "gpu" && !has_gpu)
    return Error{ErrorCode::kUnsupported,
                 "this build of MLX finds no GPU on this machine: choose --device cpu"};
  if (options.path == "auto") options.path = options.device == "gpu" ? "plain" : "fast";
  if (options.device == "gpu" && options.path == "fast")
    return Error{
        ErrorCode::kUnsupported,
        "the fast path of this build runs on the CPU: choose --path plain or --device cpu"};
  if (options.deterministic && options.path != "fast")
    return Error{
        ErrorCode::kUnsupported,
        "--deterministic holds on the fast path of the CPU only, since MLX's operations "
        "choose their order of sums by the number of rows: add --device cpu --path fast, or "
        "leave it out"};
  if (options.deterministic && !options.backend.empty())
    return Error{ErrorCode::kUnsupported,
                 "--deterministic does not hold over MLX's backends, whose sums depend on where a "
                 "row lies: leave one of the two out"};
  return check_cpu_level(options.cpu_level);
}

Status resolve_device(RankOptions& options) {
  const Status chosen = resolve_device(options, tensor::best_device() == mx::Device::gpu);
  if (!chosen) return chosen;
  if (options.device != "gpu") return {};
  const uint64_t memory = gpu_memory();
  if (memory != 0)
    options.memory_bytes = std::min(
        options.memory_bytes, static_cast<uint64_t>(static_cast<double>(memory) * kShareOfGpu));
  return {};
}

uint64_t device_memory(const RankOptions& options) {
  return options.device == "gpu" ? gpu_memory() : machine_memory();
}

void set_mlx_environment() {
  ::setenv("MLX_ENABLE_TF32", "0", 0);
  if (const auto cache = cache_folder(); !cache.empty())
    ::setenv("MLX_PTX_CACHE_DIR", (cache / "tandem" / "kernels").c_str(), 0);
}

}  // namespace tandem::app
