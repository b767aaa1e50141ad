// Codex: the Responses wire, set up by config.toml in CODEX_HOME.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

/// TOML's basic strings are JSON's.
std::string toml(const std::string& text) { return nlohmann::json(text).dump(); }

AgentSetup codex_setup(const ServerFacts& server) {
  const std::string config = fmt::format(
      "model = {}\n"
      "model_provider = \"tandem\"\n"
      "model_context_window = {}\n"
      "check_for_update_on_startup = false\n"
      "\n"
      "[model_providers.tandem]\n"
      "name = \"tandem\"\n"
      "base_url = {}\n"
      "wire_api = \"responses\"\n"
      "env_key = \"{}\"\n",
      toml(server.model), server.context, toml(server.url + "/v1"), kKeyVariable);
  return {.environment = {{"CODEX_HOME", "$FOLDER"}},
          .files = {{"config.toml", config}},
          .command = {"codex"},
          .notes = {"one task without a conversation: codex exec 'TASK'"}};
}

}  // namespace

Agent codex() {
  return {.name = "codex",
          .title = "Codex",
          .install = "npm install -g @openai/codex",
          .usual_folder = ".codex",
          .setup = codex_setup};
}

}  // namespace tandem::app::agents
