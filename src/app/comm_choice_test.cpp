#include "app/comm_choice.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tandem::app {
namespace {

SessionOptions with(const char* comm, uint32_t ranks = 2) {
  SessionOptions options;
  options.comm = comm;
  options.model.ranks = ranks;
  return options;
}

/// The rule that refuses the options; empty when they are taken.
std::string refused(const SessionOptions& options) {
  const Status checked = check_comm(options);
  if (checked) return "";
  CHECK(checked.error().code == ErrorCode::kInvalid);
  CHECK(checked.error().message.starts_with("--comm " + options.comm));
  return checked.error().message;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("comm choice: names become kinds, auto is shared memory") {
  CHECK(comm_kind(with("auto")) == plan::CommKind::kSharedMemory);
  CHECK(comm_kind(with("shared-memory")) == plan::CommKind::kSharedMemory);
  CHECK(comm_kind(with("tcp")) == plan::CommKind::kTcp);
  CHECK(comm_kind(with("ring")) == plan::CommKind::kRing);
  CHECK(comm_kind(with("jaccl")) == plan::CommKind::kJaccl);
  CHECK(comm_kind(with("nccl")) == plan::CommKind::kNccl);
  CHECK(comm_kind(with("mpi")) == plan::CommKind::kMpi);
}

TEST_CASE("comm choice: our transports carry any split, on any number of ranks") {
  for (const char* comm : {"auto", "shared-memory", "tcp"}) {
    for (const char* split : {"auto", "tensor", "pipeline"}) {
      SessionOptions options = with(comm, 1);
      options.model.split = split;
      CHECK(refused(options) == "");
      CHECK(backend_arguments(options).empty());
    }
  }
}

TEST_CASE("comm choice: what a backend of MLX cannot do is refused by name") {
  for (const char* comm : {"ring", "jaccl", "nccl", "mpi"}) {
    CAPTURE(comm);
    CHECK(has(refused(with(comm, 1)), "--ranks 2"));
    SessionOptions pipeline = with(comm);
    pipeline.model.split = "pipeline";
    CHECK(has(refused(pipeline), "tensor split only"));
    SessionOptions deterministic = with(comm);
    deterministic.model.deterministic = true;
    CHECK(has(refused(deterministic), "leave out --deterministic"));
  }
  CHECK(refused(with("ring")) == "");
  if (find_mpirun(with("mpi")).empty()) CHECK(has(refused(with("mpi")), "no mpirun in PATH"));
  CHECK(refused(with("nccl")) == "");
  CHECK(has(refused(with("jaccl")), "--jaccl-devices"));
  SessionOptions on_cpu = with("nccl");
  on_cpu.model.device = "cpu";
  CHECK(has(refused(on_cpu), "--device cpu"));
  SessionOptions fast = with("nccl");
  fast.model.path = "fast";
  CHECK(has(refused(fast), "--path fast"));
}

TEST_CASE("comm choice: mpirun is looked for in PATH, and only for MPI") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("comm_choice_test." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string program = folder / "mpirun";
  const std::string before = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  setenv("PATH", ("/nowhere::" + folder.string() + ":" + before).c_str(), 1);
  std::ofstream(program) << "#!/bin/sh\n";
  CHECK(find_mpirun(with("mpi")) != program);  // not executable
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  CHECK(find_mpirun(with("mpi")) == program);
  CHECK(find_mpirun(with("ring")) == "");
  CHECK(refused(with("mpi")) == "");
  setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("comm choice: an option of another backend is refused, not ignored") {
  SessionOptions devices = with("ring");
  devices.jaccl_devices = "/d.json";
  CHECK(has(refused(devices), "--jaccl-devices"));
  SessionOptions neighbours = with("auto");
  neighbours.jaccl_ring = true;
  CHECK(has(refused(neighbours), "--jaccl-ring"));
  SessionOptions library = with("nccl");
  library.mpi_library = "/libmpi.so";
  CHECK(has(refused(library), "--mpi-library"));
}

TEST_CASE("comm choice: a rank is told its backend and what that needs") {
  using Arguments = std::vector<std::string>;
  CHECK(backend_arguments(with("ring")) == Arguments{"--backend", "ring"});
  SessionOptions jaccl = with("jaccl");
  jaccl.jaccl_devices = "/d.json";
  jaccl.jaccl_ring = true;
  CHECK(refused(jaccl) == "");
  CHECK(backend_arguments(jaccl) ==
        Arguments{"--backend", "jaccl", "--jaccl-devices", "/d.json", "--jaccl-ring"});
  SessionOptions mpi = with("mpi");
  mpi.mpi_library = "/libmpi.so";
  CHECK(backend_arguments(mpi) == Arguments{"--backend", "mpi", "--mpi-library", "/libmpi.so"});
}

}  // namespace
}  // namespace tandem::app
