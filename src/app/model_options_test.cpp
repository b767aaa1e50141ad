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

}  // namespace
}  // namespace tandem::app
