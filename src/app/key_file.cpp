#include "app/key_file.h"

#include <fmt/format.h>

#include <fstream>

namespace tandem::app {

Result<std::vector<std::string>> read_keys(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    keys.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  if (!in.is_open() || in.bad()) {
    return Error{ErrorCode::kNotFound, fmt::format("cannot read the key file {}", file)};
  }
  if (keys.empty()) {
    return Error{ErrorCode::kInvalid, fmt::format("{} holds no key: expected one a line", file)};
  }
  return keys;
}

}  // namespace tandem::app
