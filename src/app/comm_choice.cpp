#include "app/comm_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace tandem::app {
namespace {

Error refusal(const SessionOptions& options, std::string_view rule) {
  return {ErrorCode::kInvalid, fmt::format("--comm {} {}", options.comm, rule)};
}

/// An option of another backend than the one asked for.
Status check_foreign(const SessionOptions& options) {
  const auto foreign = [&](bool is_given, const char* comm) {
    return is_given && options.comm != comm;
  };
  const char* flag = foreign(!options.jaccl_devices.empty(), "jaccl") ? "--jaccl-devices"
                     : foreign(options.jaccl_ring, "jaccl")           ? "--jaccl-ring"
                     : foreign(!options.mpi_library.empty(), "mpi")   ? "--mpi-library"
                                                                      : nullptr;
  if (flag == nullptr) return {};
  return refusal(options, fmt::format("does not use {}", flag));
}

}  // namespace

plan::CommKind comm_kind(const SessionOptions& options) {
  using plan::CommKind;
  constexpr std::array<std::pair<std::string_view, CommKind>, 7> kKinds = {
      {{"auto", CommKind::kSharedMemory},
       {"shared-memory", CommKind::kSharedMemory},
       {"tcp", CommKind::kTcp},
       {"ring", CommKind::kRing},
       {"jaccl", CommKind::kJaccl},
       {"nccl", CommKind::kNccl},
       {"mpi", CommKind::kMpi}}};
  const auto found =
      std::ranges::find(kKinds, options.comm, &std::pair<std::string_view, CommKind>::first);
  TANDEM_CHECK(found != kKinds.end(), "\"{}\" is no way to exchange tensors", options.comm);
  return found->second;
}

std::string find_mpirun(const SessionOptions& options) {
  const char* folders = std::getenv("PATH");
  if (options.comm != "mpi" || folders == nullptr) return {};
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    std::string path = folder + "/mpirun";
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Status check_comm(const SessionOptions& options) {
  if (Status own = check_foreign(options); !own) return own;
  const plan::CommKind kind = comm_kind(options);
  if (!plan::ends_with_process(kind)) return {};
  if (options.model.ranks < 2)
    return refusal(options, "is for several ranks: give --ranks 2 or more, or leave it out");
  if (options.model.split == "pipeline")
    return refusal(options,
                   "carries a tensor split only: choose --split tensor, or --comm "
                   "shared-memory or tcp for a pipeline");
  if (options.model.deterministic)
    return refusal(options,
                   "adds up in an order that depends on where a row lies: leave out "
                   "--deterministic, or choose --comm shared-memory or tcp");
  if (kind == plan::CommKind::kJaccl && options.jaccl_devices.empty())
    return refusal(options, "needs --jaccl-devices FILE");
  if (kind == plan::CommKind::kMpi && find_mpirun(options).empty())
    return refusal(options, "needs Open MPI: there is no mpirun in PATH");
  if (kind == plan::CommKind::kNccl &&
      (options.model.device == "cpu" || options.model.path == "fast"))
    return refusal(options, "moves tensors between GPUs: leave out --device cpu and --path fast");
  return {};
}

std::vector<std::string> backend_arguments(const SessionOptions& options) {
  if (!plan::ends_with_process(comm_kind(options))) return {};
  std::vector<std::string> arguments = {"--backend", options.comm};
  if (!options.jaccl_devices.empty())
    arguments.insert(arguments.end(), {"--jaccl-devices", options.jaccl_devices});
  if (options.jaccl_ring) arguments.emplace_back("--jaccl-ring");
  if (!options.mpi_library.empty())
    arguments.insert(arguments.end(), {"--mpi-library", options.mpi_library});
  return arguments;
}

}  // namespace tandem::app
