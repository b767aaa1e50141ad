#include "protocol/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/request.h"
#include "protocol/json.h"

namespace tandem::protocol {
namespace {

std::optional<std::string> decoded(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return net::percent_decode(spaced);
}

Error bad_query(const std::string& name, const std::string& rule, const std::string& value) {
  return {ErrorCode::kInvalid,
          fmt::format("'{}' must be {}, not {}", name, rule, literal(shortened(value, 60))), name};
}

}  // namespace

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (decoded(pair.substr(0, equals)) != name) continue;
    return decoded(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::nullopt;
}

Result<bool> query_flag(std::string_view query, const std::string& name) {
  const auto value = query_value(query, name);
  if (!value || *value == "false" || *value == "0") return false;
  if (value->empty() || *value == "true" || *value == "1") return true;
  return bad_query(name, "true or false", *value);
}

Result<int64_t> query_number(std::string_view query,
                             const std::string& name,
                             int64_t least,
                             int64_t most,
                             int64_t otherwise) {
  const auto value = query_value(query, name);
  if (!value) return otherwise;
  int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  return bad_query(name, fmt::format("a whole number from {} to {}", least, most), *value);
}

}  // namespace tandem::protocol
