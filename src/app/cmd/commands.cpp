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

int fail(const std::string& name, const std::string& message) {
  std::fprintf(stderr, "tandem %s: %s\n", name.c_str(), message.c_str());
  return 1;
}

}  // namespace tandem::app
