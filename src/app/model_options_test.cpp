#include "app/model_options.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

/// Why the options are refused; empty when they are taken.
std::string refusal(const ModelOptions& options) {
  const Status fits = check(options);
  if (fits) return {};
  CHECK(fits.error().code == ErrorCode::kInvalid);
  return fits.error().message;
}

TEST_CASE("model options: what no machine can do is refused, with what to leave out") {
  CHECK(refusal({}).empty());
  CHECK(refusal({.device = "cpu", .path = "fast", .deterministic = true}).empty());
  CHECK(refusal({.deterministic = true}).empty());  // a machine with a GPU will tell
  CHECK(refusal({.path = "plain"}).empty());
  CHECK(refusal({.path = "plain", .deterministic = true}).find("leave out --path plain") !=
        std::string::npos);
  CHECK(refusal({.device = "gpu", .deterministic = true}).find("leave out --device gpu") !=
        std::string::npos);
  CHECK(refusal({.device = "gpu", .path = "fast"}).find("leave out --device gpu") !=
        std::string::npos);
}

TEST_CASE("model options: ranks share the cores, and get at most four threads for each core") {
  CHECK(threads_of_rank({.ranks = 2}, 8) == 4);
  CHECK(threads_of_rank({.ranks = 16}, 8) == 1);
  CHECK(threads_of_rank({.threads = 3}, 2) == 3);
  CHECK(threads_of_rank({.threads = 8}, 2) == 8);
  CHECK(threads_of_rank({.threads = 1024}, 2) == 8);
  CHECK(threads_of_rank({.threads = 1024}, 0) == 4);  // a machine that does not say
  CHECK(threads_of_rank(alone({.ranks = 64, .threads = 1024}), 16) == 64);
}

}  // namespace
}  // namespace tandem::app
