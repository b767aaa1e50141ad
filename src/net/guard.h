// The one check that every request passes: API keys, browser origins, host names.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "net/reply.h"
#include "net/request.h"
#include "net/router.h"

namespace tandem::net {

struct GuardOptions {
  std::vector<std::string> keys;             // none: no key is asked for
  std::vector<std::string> allowed_origins;  // exact, such as "https://app.example"
  bool loopback = true;                      // the server listens on loopback only
};

/// Decides whether a request may go on. Immutable; any thread.
///
/// Keys come as "Authorization: Bearer K" or "x-api-key: K" and are compared in constant time. A
/// request with an Origin that is neither listed nor the server's own is refused, so that web pages
/// cannot use the server behind its owner's back. On loopback without keys the Host must be
/// localhost or an address: a page's name made to resolve to this machine is not.
class Guard {
 public:
  explicit Guard(GuardOptions options);

  /// A refusal, or nothing: then `request.key_id` is set.
  std::optional<Response> check(Request& request, Access access) const;

  /// The answer to OPTIONS.
  Response preflight(const Request& request, const std::string& allow) const;

  /// Headers that every response to this request carries.
  Headers response_headers(const Request& request) const;

  bool has_keys() const { return !digests_.empty(); }

 private:
  using Digest = std::array<unsigned char, 32>;

  bool is_listed(std::string_view origin) const;
  bool is_origin_ok(const Request& request) const;
  bool is_host_ok(const Request& request) const;
  std::string key_id(const Request& request) const;

  std::vector<Digest> digests_;
  std::vector<std::string> origins_;
  bool loopback_;
};

}  // namespace tandem::net
