// The query of a request's target.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tandem::protocol {

/// The first value of a name, percent-decoded, '+' as a space; nothing when it is not there or its
/// escapes are broken.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

/// A switch: "true", "1" and the name alone are true, "false", "0" and nothing false. Others:
/// kInvalid.
Result<bool> query_flag(std::string_view query, const std::string& name);

/// A whole number from `least` to `most`; `otherwise` when it is not there. Others: kInvalid.
Result<int64_t> query_number(std::string_view query,
                             const std::string& name,
                             int64_t least,
                             int64_t most,
                             int64_t otherwise);

}  // namespace tandem::protocol
