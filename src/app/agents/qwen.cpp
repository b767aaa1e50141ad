// Qwen Code: chat completions, set up by its environment, and settings in QWEN_HOME.
#include <nlohmann/json.hpp>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

AgentSetup qwen_setup(const ServerFacts& server) {
  const nlohmann::ordered_json settings = {
      {"general", {{"enableAutoUpdate", false}}},
      {"privacy", {{"usageStatisticsEnabled", false}}},
      {"telemetry", {{"enabled", false}}},
      {"security", {{"auth", {{"selectedType", "openai"}}}}},
      {"model",
       {{"name", server.model}, {"generationConfig", {{"contextWindowSize", server.context}}}}}};
  return {.environment = {{"QWEN_HOME", "$FOLDER"},
                          {"OPENAI_BASE_URL", server.url + "/v1"},
                          {"OPENAI_API_KEY", "$TANDEM_API_KEY"},
                          {"OPENAI_MODEL", server.model}},
          .files = {{"settings.json", settings.dump(2) + "\n"}},
          .command = {"qwen", "--auth-type", "openai"},
          .notes = {"one task without a conversation: the same with -p 'TASK' --approval-mode yolo "
                    "at its end"}};
}

}  // namespace

Agent qwen() {
  return {.name = "qwen",
          .title = "Qwen Code",
          .install = "npm install -g @qwen-code/qwen-code",
          .usual_folder = ".qwen",
          .setup = qwen_setup};
}

}  // namespace tandem::app::agents
