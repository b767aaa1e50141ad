#include "app/rank/backend_group.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

TEST_CASE("backend group: with NCCL each rank has one of the visible GPUs") {
  CHECK(gpu_of_rank(nullptr, 0) == "0");
  CHECK(gpu_of_rank(nullptr, 3) == "3");
  CHECK(gpu_of_rank("5", 0) == "5");
  CHECK(gpu_of_rank("5,GPU-7a,2", 1) == "GPU-7a");
  CHECK(gpu_of_rank("5,GPU-7a,2", 2) == "2");
  CHECK(gpu_of_rank("5", 1) == std::nullopt);
  CHECK(gpu_of_rank("", 0) == std::nullopt);
}

TEST_CASE("backend group: what this machine lacks is known before weights are read") {
  RankOptions options;
  CHECK(check_backend(options));
  options.backend = "ring";
  CHECK(check_backend(options));
  for (const char* name : {"jaccl", "nccl", "mpi"}) {
    CAPTURE(name);
    options.backend = name;
    options.device = "cpu";
    const Status usable = check_backend(options);
    REQUIRE(!usable);  // without a GPU or mpirun also where MLX has the backend
    CHECK(usable.error().code == ErrorCode::kUnsupported);
    CHECK(usable.error().message.find(name) != std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::app
