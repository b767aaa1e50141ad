#include "app/model_path.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "app/cache_folder.h"
#include "base/environment_test.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

TEST_CASE("cache folder: the one that is set, else in the home, else none") {
  const TestVariable home("HOME", "/home/one");
  {
    const TestVariable given("XDG_CACHE_HOME", "/caches");
    CHECK(cache_folder() == "/caches");
  }
  for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
    const TestVariable given("XDG_CACHE_HOME", nothing);
    CHECK(cache_folder() == "/home/one/.cache");
    const TestVariable homeless("HOME", nothing);
    CHECK(cache_folder().empty());
  }
}

TEST_CASE("find model: without a home nothing is looked for where tandem happens to be started") {
  const fs::path here = fs::temp_directory_path() / fmt::format("find_model.{}", ::getpid());
  const fs::path snapshot = here / "huggingface/hub/models--a--b/snapshots/1";
  fs::create_directories(snapshot);
  fs::create_directories(here / "huggingface/hub/models--a--b/refs");
  std::ofstream(snapshot / "config.json") << "{}";
  std::ofstream(here / "huggingface/hub/models--a--b/refs/main") << "1";
  const TestVariable hub("HF_HUB_CACHE", nullptr), hf("HF_HOME", nullptr);
  {
    const TestVariable given("XDG_CACHE_HOME", here.c_str());
    const auto found = find_model("a/b");
    REQUIRE(found);
    CHECK(found->path == snapshot);
    CHECK(found->id == "a/b");
  }
  const TestVariable given("XDG_CACHE_HOME", nullptr), homeless("HOME", nullptr);
  const fs::path before = fs::current_path();
  fs::current_path(here);
  const auto named = find_model("a/b");
  const auto usual = find_model("");
  fs::current_path(before);
  fs::remove_all(here);
  REQUIRE(!named);
  CHECK(named.error().code == ErrorCode::kNotFound);
  REQUIRE(!usual);
  CHECK(usual.error().code == ErrorCode::kNotFound);
  CHECK(usual.error().message.find("set HOME") != std::string::npos);
}

}  // namespace
}  // namespace tandem::app
