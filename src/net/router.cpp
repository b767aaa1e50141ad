#include "net/router.h"

#include <algorithm>
#include <optional>

namespace tandem::net {
namespace {

using Parameters = std::map<std::string, std::string>;

std::string_view take_segment(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view segment = rest.substr(0, slash);
  rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  return segment;
}

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

bool put(Parameters& parameters, std::string_view name, std::string_view raw) {
  auto value = percent_decode(raw);
  if (!value || value->empty()) return false;
  parameters[std::string(name)] = std::move(*value);
  return true;
}

std::optional<Parameters> match_pattern(std::string_view pattern, std::string_view path) {
  Parameters found;
  if (pattern.empty() || path.empty() || path.front() != '/') return std::nullopt;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  while (true) {
    const bool pattern_ends = pattern.find('/') == std::string_view::npos;
    const bool path_ends = path.find('/') == std::string_view::npos;
    const std::string_view expected = take_segment(pattern);
    if (is_parameter(expected)) {
      std::string_view name = expected.substr(1, expected.size() - 2);
      if (name.ends_with("...")) {
        name.remove_suffix(3);
        return put(found, name, path) ? std::optional(found) : std::nullopt;
      }
      if (!put(found, name, take_segment(path))) return std::nullopt;
    } else if (take_segment(path) != expected) {
      return std::nullopt;
    }
    if (pattern_ends != path_ends) return std::nullopt;
    if (pattern_ends) return found;
  }
}

}  // namespace

void Router::add(Route route) {
  const bool exact = route.pattern.find('{') == std::string::npos;
  const auto place = exact ? std::find_if(routes_.begin(), routes_.end(),
                                          [](const Route& other) {
                                            return other.pattern.find('{') != std::string::npos;
                                          })
                           : routes_.end();
  routes_.insert(place, std::move(route));
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Match result;
  for (const Route& route : routes_) {
    auto parameters = match_pattern(route.pattern, path);
    if (!parameters) continue;
    if (route.method == wanted) return {&route, std::move(*parameters), {}};
    if (!result.allow.empty()) result.allow += ", ";
    result.allow += route.method;
  }
  return result;
}

void Router::restate_below(std::string path, Restate restate) {
  restated_.emplace_back(std::move(path), std::move(restate));
}

void Router::restate(std::string_view path, Response& fault) const {
  for (const auto& [top, restate] : restated_) {
    const bool is_below = path.starts_with(top) && path.substr(top.size()).starts_with('/');
    if (path == top || is_below) return restate(fault);
  }
}

}  // namespace tandem::net
