#include "app/rank/device_choice.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

/// "device path" of what the options mean, or the error.
std::string chosen(std::string device, std::string path, bool has_gpu) {
  RankOptions options;
  options.device = std::move(device);
  options.path = std::move(path);
  const Status status = resolve_device(options, has_gpu);
  return status ? options.device + " " + options.path : status.error().message;
}

TEST_CASE("device: without a GPU everything runs on the CPU, and asking for one is refused") {
  CHECK(chosen("auto", "auto", false) == "cpu fast");
  CHECK(chosen("auto", "plain", false) == "cpu plain");
  CHECK(chosen("cpu", "auto", false) == "cpu fast");
  CHECK(chosen("gpu", "auto", false).find("--device cpu") != std::string::npos);
}

TEST_CASE("device: a GPU is taken, with the plain path, unless the CPU or its path is named") {
  CHECK(chosen("auto", "auto", true) == "gpu plain");
  CHECK(chosen("auto", "plain", true) == "gpu plain");
  CHECK(chosen("gpu", "auto", true) == "gpu plain");
  CHECK(chosen("auto", "fast", true) == "cpu fast");
  CHECK(chosen("cpu", "auto", true) == "cpu fast");
  CHECK(chosen("cpu", "plain", true) == "cpu plain");
  CHECK(chosen("gpu", "fast", true).find("--path plain") != std::string::npos);
}

TEST_CASE("device: --deterministic is refused where a row's bits depend on other rows") {
  const auto refusal = [](std::string device, std::string path, std::string backend = {}) {
    RankOptions options;
    options.device = std::move(device);
    options.path = std::move(path);
    options.backend = std::move(backend);
    options.deterministic = true;
    const Status status = resolve_device(options, true);
    return status ? std::string() : status.error().message;
  };
  CHECK(refusal("cpu", "auto").empty());
  CHECK(refusal("auto", "fast").empty());
  for (const auto& [device, path] : {std::pair("auto", "auto"), {"gpu", "auto"}, {"cpu", "plain"}})
    CHECK(refusal(device, path).find("--device cpu --path fast") != std::string::npos);
  CHECK(refusal("cpu", "fast", "ring").find("backends") != std::string::npos);
}

}  // namespace
}  // namespace tandem::app
