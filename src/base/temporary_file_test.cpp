#include "base/temporary_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/environment_test.h"

namespace tandem {
namespace {

TEST_CASE("temporary file: holds its content for its owner alone, until its object goes") {
  constexpr std::string_view kText = "what others should not read";
  std::string path;
  {
    auto written = TemporaryFile::write(std::as_bytes(std::span(kText)));
    REQUIRE(written);
    const TemporaryFile file = std::move(*written);  // the one moved from removes nothing
    path = file.path();
    std::ifstream in(path);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == kText);
    struct stat state{};
    REQUIRE(::stat(path.c_str(), &state) == 0);
    CHECK((state.st_mode & 0777) == 0600);
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("temporary file: without a folder that takes it there is an error, and no exception") {
  for (const char* folder : {"/proc", "/nowhere"}) {
    const TestVariable unwritable("TMPDIR", folder);
    const auto file = TemporaryFile::write({});
    REQUIRE(!file);
    CHECK(file.error().code == ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace tandem
