// API keys in a file, one a line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tandem::app {

/// The keys of a file, without spaces around them; empty lines are passed over, and so are the
/// line ends of Windows. Errors: kNotFound (cannot be read), kInvalid (holds no key).
Result<std::vector<std::string>> read_keys(const std::string& file);

}  // namespace tandem::app
