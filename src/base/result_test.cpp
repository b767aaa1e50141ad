#include "base/result.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace tandem {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kInvalid, "expected an even number", "n"};
  return n / 2;
}

TEST_CASE("result: holds a value or an error, never both") {
  CHECK(half(4).value() == 2);
  const auto odd = half(3);
  CHECK_FALSE(odd);
  CHECK(odd.error() == Error{ErrorCode::kInvalid, "expected an even number", "n"});
}

TEST_CASE("result: moves what it holds") {
  Result<std::unique_ptr<std::string>> made(std::make_unique<std::string>("x"));
  const auto taken = *std::move(made);
  CHECK(*taken == "x");
}

TEST_CASE("status: is good by default and carries an error") {
  CHECK(Status());
  const Status bad = Error{ErrorCode::kIo, "no disk"};
  CHECK_FALSE(bad);
  CHECK(std::string(name(bad.error().code)) == "io");
}

}  // namespace
}  // namespace tandem
