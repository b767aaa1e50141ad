// An HTTP request as handlers see it: whole, bounded and past the guard.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::net {

struct Header {
  std::string name;
  std::string value;
};

using Headers = std::vector<Header>;

/// The first value of a header, compared without case; empty when there is none.
std::string_view find_header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // without '?'
  Headers headers;
  std::string body;
  std::string peer;                               // the client's address, without a port
  std::string key_id;                             // names the API key used; empty when none are set
  std::map<std::string, std::string> parameters;  // of the route's pattern, percent-decoded

  std::string_view header(std::string_view name) const { return find_header(headers, name); }
};

/// Undoes %XX. Nothing when an escape is broken.
std::optional<std::string> percent_decode(std::string_view text);

bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace tandem::net
