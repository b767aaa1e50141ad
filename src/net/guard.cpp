#include "net/guard.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

namespace tandem::net {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view presented_key(const Request& request) {
  const std::string_view bearer = request.header("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (bearer.size() > kScheme.size() &&
      equals_ignoring_case(bearer.substr(0, kScheme.size()), kScheme)) {
    return trimmed(bearer.substr(kScheme.size()));
  }
  return trimmed(request.header("x-api-key"));
}

/// Host without its port.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_address(std::string_view name) {
  if (name.starts_with('[')) return true;
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

Guard::Guard(GuardOptions options)
    : origins_(std::move(options.allowed_origins)), loopback_(options.loopback) {
  for (const std::string& key : options.keys) {
    Digest& digest = digests_.emplace_back();
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  }
}

bool Guard::is_listed(std::string_view origin) const {
  return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

bool Guard::is_origin_ok(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_listed(origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos &&
         equals_ignoring_case(origin.substr(scheme + 3), request.header("host"));
}

bool Guard::is_host_ok(const Request& request) const {
  if (!loopback_ || has_keys()) return true;
  const std::string_view host = request.header("host");
  if (host.empty()) return true;
  const std::string_view name = host_name(host);
  return equals_ignoring_case(name, "localhost") || is_address(name);
}

std::string Guard::key_id(const Request& request) const {
  const std::string_view key = presented_key(request);
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  int found = 0;
  for (const Digest& known : digests_) {
    found |= static_cast<int>(CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0);
  }
  if (found == 0) return {};
  std::string id = "key-";
  for (size_t i = 0; i < 8; ++i) id += fmt::format("{:02x}", digest[i]);
  return id;
}

std::optional<Response> Guard::check(Request& request, Access access) const {
  if (!is_host_ok(request)) {
    return fault(403, "host_not_allowed",
                 "without an API key this server answers to localhost and addresses only, not to "
                 "another host name: set a key, or use 127.0.0.1");
  }
  if (!is_origin_ok(request)) {
    return fault(403, "origin_not_allowed",
                 "requests from this web origin are not allowed: list it in --allowed-origins");
  }
  if (access == Access::kOpen || !has_keys()) return std::nullopt;
  request.key_id = key_id(request);
  if (!request.key_id.empty()) return std::nullopt;
  Response refusal = fault(401, "invalid_api_key",
                           presented_key(request).empty()
                               ? "an API key is needed: send 'Authorization: Bearer KEY' or "
                                 "'x-api-key: KEY'"
                               : "this API key is not known here");
  refusal.headers.push_back({"WWW-Authenticate", "Bearer"});
  return refusal;
}

Headers Guard::response_headers(const Request& request) const {
  if (origins_.empty()) return {};
  Headers headers{{"Vary", "Origin"}};
  const std::string_view origin = request.header("origin");
  if (is_listed(origin)) {
    headers.push_back({"Access-Control-Allow-Origin", std::string(origin)});
    headers.push_back({"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"});
  }
  return headers;
}

Response Guard::preflight(const Request& request, const std::string& allow) const {
  Response response{.status = 204, .headers = {{"Allow", allow}}, .body = {}};
  if (is_listed(request.header("origin"))) {
    const std::string_view wanted = request.header("access-control-request-headers");
    response.headers.push_back({"Access-Control-Allow-Methods", allow});
    response.headers.push_back(
        {"Access-Control-Allow-Headers",
         wanted.empty() ? "Authorization, Content-Type, X-Api-Key" : std::string(wanted)});
    response.headers.push_back({"Access-Control-Max-Age", "600"});
  }
  return response;
}

}  // namespace tandem::net
