#include "app/rank/backend_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/temporary_file.h"
#include "comm/socket.h"

namespace tandem::app {
namespace {

constexpr std::array<std::pair<plan::CommKind, tensor::Backend>, 4> kBackends = {
    {{plan::CommKind::kRing, tensor::Backend::kRing},
     {plan::CommKind::kJaccl, tensor::Backend::kJaccl},
     {plan::CommKind::kNccl, tensor::Backend::kNccl},
     {plan::CommKind::kMpi, tensor::Backend::kMpi}}};

Error unsupported(const RankOptions& options, std::string_view why) {
  return {ErrorCode::kUnsupported, fmt::format("[backend.{}] {}", options.backend, why)};
}

/// The command line allows no other names.
tensor::Backend backend_named(const std::string& name) {
  const auto found = std::ranges::find_if(
      kBackends, [&](const auto& entry) { return name == tensor::name(entry.second); });
  TANDEM_CHECK(found != kBackends.end(), "\"{}\" is no backend", name);
  return found->second;
}

/// Every rank's own text, in rank order.
Result<std::vector<std::string>> tell_each_other(comm::Transport& meeting, const std::string& own) {
  using Record = std::array<char, 128>;
  Record mine{};
  TANDEM_CHECK(own.size() < mine.size(), "an address of {} bytes", own.size());
  std::ranges::copy(own, mine.begin());
  std::vector<Record> records(meeting.size());
  const std::vector<size_t> sizes(meeting.size(), sizeof(Record));
  const Status done = meeting.all_gather(std::as_bytes(std::span(mine)), sizes,
                                         reinterpret_cast<std::byte*>(records.data()));
  if (!done) return done.error();
  std::vector<std::string> result;
  for (const Record& record : records) result.emplace_back(record.data());
  return result;
}

std::string hosts_json(const std::vector<std::string>& addresses) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const std::string& address : addresses) hosts.push_back(nlohmann::json::array({address}));
  return hosts.dump();
}

}  // namespace

std::optional<std::string> gpu_of_rank(const char* visible, uint32_t rank) {
  if (visible == nullptr) return std::to_string(rank);
  std::string_view rest = visible;
  for (; rank > 0; --rank) {
    const size_t comma = rest.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(comma + 1);
  }
  rest = rest.substr(0, rest.find(','));
  return rest.empty() ? std::nullopt : std::optional<std::string>(rest);
}

void set_backend_environment(const RankOptions& options) {
  if (options.backend == "nccl") {
    // An index that does not exist: MLX then finds no GPU, which check_backend() tells.
    const auto gpu = gpu_of_rank(std::getenv("CUDA_VISIBLE_DEVICES"), options.rank);
    ::setenv("CUDA_VISIBLE_DEVICES", gpu.value_or("-1").c_str(), 1);
  }
  if (!options.mpi_library.empty()) ::setenv("MLX_MPI_LIBNAME", options.mpi_library.c_str(), 1);
}

Status check_backend(const RankOptions& options) {
  if (options.backend.empty()) return {};
  const tensor::Backend backend = backend_named(options.backend);
  if (Status there = tensor::check_available(backend); !there) return there;
  if (backend == tensor::Backend::kNccl && options.device != "gpu")
    return unsupported(options, fmt::format("rank {} has no NVIDIA GPU of its own: NCCL needs one "
                                            "for each rank",
                                            options.rank));
  if (backend == tensor::Backend::kMpi && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    return unsupported(options, "this rank was not started by Open MPI's mpirun");
  return {};
}

Result<tensor::mx::distributed::Group> join_backend(const RankOptions& options,
                                                    plan::CommKind kind,
                                                    comm::Transport& meeting) {
  const auto asked = std::ranges::find(kBackends, kind, &decltype(kBackends)::value_type::first);
  if (asked == kBackends.end() || options.backend != tensor::name(asked->second)) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("the group's tensors go another way than \"{}\", for which this rank "
                             "was started",
                             options.backend)};
  }
  const auto any = comm::tcp_address(options.listen_host + ":0");
  if (!any) return any.error();
  const auto port = comm::reserve(*any);  // for the backend, until it listens there
  if (!port) return port.error();
  const auto addresses =
      tell_each_other(meeting, fmt::format("{}:{}", options.listen_host, comm::local_port(*port)));
  if (!addresses) return addresses.error();
  tensor::BackendSettings settings{
      .backend = asked->second, .rank = meeting.rank(), .size = meeting.size()};
  std::optional<TemporaryFile> hostfile;  // until the ring has read it
  switch (settings.backend) {
    case tensor::Backend::kRing: {
      const std::string hosts = hosts_json(*addresses);
      auto written = TemporaryFile::write(std::as_bytes(std::span(hosts)));
      if (!written) return written.error();
      settings.hostfile = hostfile.emplace(std::move(*written)).path();
      break;
    }
    case tensor::Backend::kJaccl:
      settings.devices = options.jaccl_devices;
      settings.jaccl_ring = options.jaccl_ring;
      settings.coordinator = addresses->front();
      break;
    case tensor::Backend::kNccl:
      settings.coordinator = addresses->front();
      break;
    case tensor::Backend::kMpi:
      settings.library = options.mpi_library;
      break;
  }
  return tensor::start(settings);
}

}  // namespace tandem::app
