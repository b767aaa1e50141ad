// The tandem executable: command line, head and node agent. It links no libmlx; a test proves it.
#include <csignal>
#include <exception>

#include "app/command.h"
#include "app/version.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"tandem: one local LLM endpoint from one or several machines"};
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
  CLI11_PARSE(app, argc, argv);
  try {
    return chosen();
  } catch (const std::exception& problem) {
    return tandem::app::fail(name, problem.what());
  }
}
