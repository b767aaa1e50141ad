// The tandem executable: command line, head and node agent. It links no libmlx; a test proves it.
#include <csignal>
#include <cstdio>
#include <exception>

#include "app/command.h"
#include "app/version.h"

namespace {

/// The first word is a command, whatever else is wrong: CLI11 would only say that one is missing.
bool names_no_command(const CLI::App& app, const char* word) {
  const auto named = [&](const CLI::App* command) { return command->get_name() == word; };
  return word[0] != '-' && app.get_subcommands(named).empty();
}

std::string trouble(const CLI::App* app, const CLI::Error& error) {
  std::string name = "tandem";
  for (const CLI::App* command : app->get_subcommands()) name += " " + command->get_name();
  return name + ": " + error.what() + " (" + name + " --help tells more)\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"tandem: one local LLM endpoint from one or several machines", "tandem"};
  app.failure_message(trouble);
  app.set_version_flag("--version", std::string(tandem::app::kVersion));
  app.require_subcommand(1);
  std::function<int()> chosen;
  std::string name;
  for (const tandem::app::Command& command : tandem::app::commands()) {
    CLI::App* parser = app.add_subcommand(command.name, command.summary);
    const auto run = command.declare(*parser);
    parser->callback([&, run, command_name = command.name] {
      chosen = run;
      name = command_name;
    });
  }
  if (argc > 1 && names_no_command(app, argv[1])) {
    std::fprintf(stderr, "tandem: there is no command '%s' (tandem --help lists them)\n", argv[1]);
    return 2;
  }
  CLI11_PARSE(app, argc, argv);
  try {
    return chosen();
  } catch (const std::exception& problem) {
    return tandem::app::fail(name, problem.what());
  }
}
