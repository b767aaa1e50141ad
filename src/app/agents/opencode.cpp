// OpenCode: chat completions, set up by a JSON file that OPENCODE_CONFIG names.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

constexpr uint64_t kOpencodeOutput = 8192;

AgentSetup opencode_setup(const ServerFacts& server) {
  const nlohmann::ordered_json model = {
      {"name", server.model},
      {"tool_call", true},
      {"limit",
       {{"context", server.context}, {"output", std::min(server.max_output, kOpencodeOutput)}}}};
  const nlohmann::ordered_json config = {
      {"$schema", "https://opencode.ai/config.json"},
      {"model", "tandem/" + server.model},
      {"autoupdate", false},
      {"share", "disabled"},
      {"provider",
       {{"tandem",
         {{"name", "tandem"},
          {"npm", "@ai-sdk/openai-compatible"},
          {"options", {{"baseURL", server.url + "/v1"}, {"apiKey", "{env:TANDEM_API_KEY}"}}},
          {"models", {{server.model, model}}}}}}}};
  return {.environment = {{"OPENCODE_CONFIG", "$FOLDER/opencode.json"},
                          {"OPENCODE_DISABLE_MODELS_FETCH", "1"},
                          {"OPENCODE_DISABLE_AUTOUPDATE", "1"}},
          .files = {{"opencode.json", config.dump(2) + "\n"}},
          .command = {"opencode"},
          .notes = {"one task without a conversation: opencode run 'TASK'"}};
}

}  // namespace

Agent opencode() {
  return {.name = "opencode",
          .title = "OpenCode",
          .install = "npm install -g opencode-ai",
          .usual_folder = ".config/opencode",
          .setup = opencode_setup};
}

}  // namespace tandem::app::agents
