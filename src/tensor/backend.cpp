#include "tensor/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tandem::tensor {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Error invalid(Backend backend, std::string_view rule, std::string field) {
  return {.code = ErrorCode::kInvalid,
          .message = fmt::format("[backend.{}] {}", name(backend), rule),
          .field = std::move(field)};
}

/// The first field that belongs to another backend.
std::string foreign_field(const BackendSettings& s) {
  const auto is = [&](Backend backend) { return s.backend == backend; };
  if (!is(Backend::kRing) && !s.hostfile.empty()) return "hostfile";
  if (!is(Backend::kJaccl) && !s.devices.empty()) return "devices";
  if (!is(Backend::kJaccl) && s.jaccl_ring) return "jaccl_ring";
  if (!is(Backend::kJaccl) && !is(Backend::kNccl) && !s.coordinator.empty()) return "coordinator";
  if (!is(Backend::kMpi) && !s.library.empty()) return "library";
  return "";
}

Result<Variables> ring(const BackendSettings& s) {
  if (s.hostfile.empty()) return invalid(s.backend, "needs a hostfile", "hostfile");
  Variables variables{{"MLX_HOSTFILE", s.hostfile}, {"MLX_RANK", std::to_string(s.rank)}};
  return variables;
}

Result<Variables> jaccl(const BackendSettings& s) {
  if (s.devices.empty()) return invalid(s.backend, "needs a file of RDMA devices", "devices");
  if (s.coordinator.empty()) return invalid(s.backend, "needs rank 0's ip:port", "coordinator");
  Variables variables{{"MLX_IBV_DEVICES", s.devices},
                      {"MLX_JACCL_COORDINATOR", s.coordinator},
                      {"MLX_RANK", std::to_string(s.rank)}};
  if (s.jaccl_ring) variables.emplace_back("MLX_JACCL_RING", "1");
  return variables;
}

Result<Variables> nccl(const BackendSettings& s) {
  const size_t colon = s.coordinator.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == s.coordinator.size()) {
    return invalid(s.backend, "needs rank 0's ip:port", "coordinator");
  }
  Variables variables{{"NCCL_HOST_IP", s.coordinator.substr(0, colon)},
                      {"NCCL_PORT", s.coordinator.substr(colon + 1)},
                      {"MLX_WORLD_SIZE", std::to_string(s.size)},
                      {"MLX_RANK", std::to_string(s.rank)}};
  return variables;
}

Result<Variables> mpi(const BackendSettings& s) {
  Variables variables;
  if (!s.library.empty()) variables.emplace_back("MLX_MPI_LIBNAME", s.library);
  return variables;
}

const char* advice(Backend backend) {
  switch (backend) {
    case Backend::kRing:
      return "use our own transport";
    case Backend::kJaccl:
      return "it needs the macOS build of MLX and RDMA over Thunderbolt 5; use our TCP transport";
    case Backend::kNccl:
      return "it needs the CUDA build of MLX and NVIDIA GPUs; use our own transport";
    case Backend::kMpi:
      return "it needs an installed libmpi and ranks that mpirun started; name the library if it "
             "is not where the system looks";
  }
  return "";
}

/// MLX reports by text alone. What it says about files and settings is the user's to mend; all else
/// is about ranks that were not reached.
ErrorCode code_of(std::string_view text) {
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
  };
  if (has({"connect", "accept", "bind", "listen"})) return ErrorCode::kUnavailable;
  if (has({"hostfile", "Hostfile", "parse", "json", "open", "Rank", "RANK", "required"})) {
    return ErrorCode::kInvalid;
  }
  return ErrorCode::kUnavailable;
}

}  // namespace

const char* name(Backend backend) {
  switch (backend) {
    case Backend::kRing:
      return "ring";
    case Backend::kJaccl:
      return "jaccl";
    case Backend::kNccl:
      return "nccl";
    case Backend::kMpi:
      return "mpi";
  }
  return "unknown";
}

bool available(Backend backend) { return mx::distributed::is_available(name(backend)); }

Status check_available(Backend backend) {
  if (available(backend)) return {};
  return Error{.code = ErrorCode::kUnsupported,
               .message = fmt::format("[backend] {} is not available in this build or on this "
                                      "hardware: {}",
                                      name(backend), advice(backend))};
}

Result<Variables> environment(const BackendSettings& settings) {
  if (settings.rank >= settings.size) {
    return invalid(settings.backend,
                   fmt::format("rank {} of {} ranks", settings.rank, settings.size), "rank");
  }
  if (const std::string field = foreign_field(settings); !field.empty()) {
    return invalid(settings.backend, fmt::format("does not use {}", field), field);
  }
  switch (settings.backend) {
    case Backend::kRing:
      return ring(settings);
    case Backend::kJaccl:
      return jaccl(settings);
    case Backend::kNccl:
      return nccl(settings);
    case Backend::kMpi:
      return mpi(settings);
  }
  return invalid(settings.backend, "is not known", "backend");
}

Result<mx::distributed::Group> start(const BackendSettings& settings) {
  const auto variables = environment(settings);
  if (!variables) return variables.error();
  const char* backend = name(settings.backend);
  for (const auto& [key, value] : *variables) setenv(key.c_str(), value.c_str(), 1);
  if (Status there = check_available(settings.backend); !there) return there.error();
  try {
    mx::distributed::Group group = mx::distributed::init(true, backend);
    if (static_cast<uint32_t>(group.size()) != settings.size ||
        static_cast<uint32_t>(group.rank()) != settings.rank) {
      return Error{
          .code = ErrorCode::kInvalid,
          .message = fmt::format("[backend.{}] joined as rank {} of {}, expected {} of {}", backend,
                                 group.rank(), group.size(), settings.rank, settings.size)};
    }
    return group;
  } catch (const std::exception& e) {
    const ErrorCode code = code_of(e.what());
    return Error{
        .code = code,
        .message = fmt::format("[backend.{}] {}: {}", backend,
                               code == ErrorCode::kInvalid ? "cannot use its settings"
                                                           : "did not reach the other ranks",
                               e.what())};
  }
}

}  // namespace tandem::tensor
