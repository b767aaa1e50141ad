// A command of the tandem executable, as data: its name, what it is for and how to run it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
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

/// The `declare` of a command whose options are a struct of its own.
template <typename Options>
std::function<std::function<int()>(CLI::App&)> with_options(void (*declare_options)(CLI::App&,
                                                                                    Options&),
                                                            int (*run)(const Options&)) {
  return [=](CLI::App& app) -> std::function<int()> {
    const auto options =
        std::make_shared<Options>();  // shared: the parser fills what the run reads
    declare_options(app, *options);
    return [=] { return run(*options); };
  };
}

/// Every command of cmd/commands.inc, in its order.
std::vector<Command> commands();

/// Checks that an option is a number of this range, which "nan" is not.
CLI::Validator within(double low, double high);

/// Makes an option a list with commas, whose next argument is not taken for one more value.
CLI::Option* comma_list(CLI::Option* option);

/// Flushes standard output. False when something of it could not be written.
bool flush_output();

/// Prints "tandem NAME: message" to stderr and returns 1.
int fail(const std::string& name, const std::string& message);

}  // namespace tandem::app
