#include "protocol/query.h"

#include <doctest/doctest.h>

namespace tandem::protocol {
namespace {

TEST_CASE("query: values are found by name and decoded") {
  CHECK(query_value("a=1&b=x%20y+z&c", "b") == "x y z");
  CHECK(query_value("a=1&b=2", "a") == "1");
  CHECK(query_value("a=1&b", "b") == "");
  CHECK(query_value("include%5B%5D=x", "include[]") == "x");
  CHECK(query_value("ab=1", "a") == std::nullopt);
  CHECK(query_value("", "a") == std::nullopt);
  CHECK(query_value("a=%zz", "a") == std::nullopt);
}

TEST_CASE("query: switches and numbers say what they must be") {
  CHECK(query_flag("stream=true", "stream").value());
  CHECK_FALSE(query_flag("stream=false", "stream").value());
  CHECK_FALSE(query_flag("", "stream").value());
  CHECK(query_flag("stream=maybe", "stream").error().field == "stream");
  CHECK(query_number("limit=7", "limit", 1, 100, 20).value() == 7);
  CHECK(query_number("", "limit", 1, 100, 20).value() == 20);
  for (const char* bad :
       {"limit=0", "limit=101", "limit=", "limit=7x", "limit=9999999999999999999"})
    CHECK(query_number(bad, "limit", 1, 100, 20).error().code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::protocol
