// pi: chat completions, set up by models.json in PI_CODING_AGENT_DIR.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

constexpr uint64_t kPiOutput = 16384;

AgentSetup pi_setup(const ServerFacts& server) {
  const nlohmann::ordered_json model = {
      {"id", server.model},
      {"name", server.model},
      {"input", {"text"}},
      {"contextWindow", server.context},
      {"maxTokens", std::min(server.max_output, kPiOutput)},
      {"cost", {{"input", 0}, {"output", 0}, {"cacheRead", 0}, {"cacheWrite", 0}}}};
  const nlohmann::ordered_json config = {
      {"providers",
       {{"tandem",
         {{"baseUrl", server.url + "/v1"},
          {"api", "openai-completions"},
          {"apiKey", kKeyVariable},  // it takes the variable of that name
          {"models", nlohmann::ordered_json::array({model})}}}}}};
  return {.environment = {{"PI_CODING_AGENT_DIR", "$FOLDER"}, {"PI_OFFLINE", "1"}},
          .files = {{"models.json", config.dump(2) + "\n"}},
          .command = {"pi", "--provider", "tandem", "--model", server.model},
          .notes = {"one task without a conversation: the same with -p 'TASK' at its end"}};
}

}  // namespace

Agent pi() {
  return {.name = "pi",
          .title = "pi",
          .install = "npm install -g @mariozechner/pi-coding-agent",
          .usual_folder = ".pi/agent",
          .setup = pi_setup};
}

}  // namespace tandem::app::agents
