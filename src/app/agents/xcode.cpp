// Xcode's coding assistant: chat completions, set up in its settings.
#include <fmt/format.h>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

AgentSetup xcode_setup(const ServerFacts& server) {
  const std::string port = server.url.substr(server.url.rfind(':') + 1);
  return {
      .notes = {"Xcode 26 or later: Settings > Intelligence > Add a Model Provider",
                fmt::format("on this machine: Locally Hosted, port {}, description tandem", port),
                fmt::format("on another, or with a key: Internet Hosted, URL {}, API key header "
                            "Authorization, API key: the word Bearer and the key",
                            server.url),
                fmt::format("then choose the model {} in the coding assistant", server.model)}};
}

}  // namespace

Agent xcode() {
  return {
      .name = "xcode", .title = "Xcode", .install = "the App Store has it", .setup = xcode_setup};
}

}  // namespace tandem::app::agents
