// "host:port", as people write addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tandem {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

/// Splits "host:port" or "[v6]:port"; the port is a number, and names are not looked up. Error:
/// kInvalid.
Result<HostPort> parse_host_port(std::string_view address);

}  // namespace tandem
