// A command of the tandem executable, as data: its name, what it is for and how to run it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tandem::app {

struct Command {
  std::string name;
  std::string summary;  // one line, for the list of commands
  /// Declares arguments and options on the command's own parser and returns what runs after
  /// parsing: it gives the process's exit code.
  std::function<std::function<int()>(CLI::App&)> declare;
};

/// Every command of cmd/commands.inc, in its order.
std::vector<Command> commands();

/// Prints "tandem NAME: message" to stderr and returns 1.
int fail(const std::string& name, const std::string& message);

}  // namespace tandem::app
