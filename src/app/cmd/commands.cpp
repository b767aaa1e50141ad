#include <fmt/format.h>

#include <cstdio>

#include "app/command.h"

namespace tandem::app {

#define X(command) Command command();
#include "app/cmd/commands.inc"
#undef X

std::vector<Command> commands() {
  return {
#define X(command) command(),
#include "app/cmd/commands.inc"
#undef X
  };
}

CLI::Validator within(double low, double high) {
  const auto check = [=](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
      return std::string();
    return fmt::format("must be from {} to {}, not {}", low, high, text);
  };
  return CLI::Validator(check, fmt::format("{} to {}", low, high));
}

CLI::Option* comma_list(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false);
}

bool flush_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int fail(const std::string& name, const std::string& message) {
  std::fprintf(stderr, "tandem %s: %s\n", name.c_str(), message.c_str());
  return 1;
}

}  // namespace tandem::app
