#include "base/host_port.h"

#include <fmt/format.h>

#include <charconv>

namespace tandem {

Result<HostPort> parse_host_port(std::string_view address) {
  const size_t colon = address.rfind(':');
  const auto bad = [&] {
    return Error{ErrorCode::kInvalid,
                 fmt::format("expected host:port or [v6]:port, got '{}'", address)};
  };
  if (colon == std::string_view::npos || colon == 0) return bad();
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return bad();
  }
  uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || end != digits.data() + digits.size()) return bad();
  return HostPort{std::string(host), port};
}

}  // namespace tandem
