#include "gen/check_index_reuse.h"

#include <doctest/doctest.h>

namespace tandem::gen {
namespace {

TEST_CASE("index_reuse: models that choose blocks take up to 48, others none, and errors say so") {
  const Limits choosing{.vocab = 9, .max_context = 9, .chooses_blocks = true};
  const Limits other{.vocab = 9, .max_context = 9};
  CHECK(check_index_reuse(0, other).has_value());
  CHECK(check_index_reuse(48, choosing).has_value());
  const Status too_old = check_index_reuse(49, choosing);
  REQUIRE_FALSE(too_old.has_value());
  CHECK(too_old.error() ==
        Error{ErrorCode::kInvalid, "index_reuse must be from 0 to 48, got 49", "index_reuse"});
  const Status no_blocks = check_index_reuse(1, other);
  REQUIRE_FALSE(no_blocks.has_value());
  CHECK(no_blocks.error().code == ErrorCode::kInvalid);
  CHECK(no_blocks.error().field == "index_reuse");
  CHECK(no_blocks.error().message.ends_with("this model has none: leave it out"));
}

}  // namespace
}  // namespace tandem::gen
