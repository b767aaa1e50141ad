// Open WebUI: chat completions in a browser, set up by its environment.
#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

AgentSetup openwebui_setup(const ServerFacts& server) {
  return {.environment = {{"DATA_DIR", "$FOLDER"},
                          {"OPENAI_API_BASE_URL", server.url + "/v1"},
                          {"OPENAI_API_KEY", "$TANDEM_API_KEY"},
                          {"ENABLE_OLLAMA_API", "false"},
                          {"DEFAULT_MODELS", server.model}},
          .command = {"open-webui", "serve", "--port", "3000"},
          .notes = {"it keeps its first settings in its database: later changes belong into "
                    "Admin Panel > Settings > Connections",
                    "from a container, this machine is host.docker.internal: serve with --host "
                    "and --api-key-file then"}};
}

}  // namespace

Agent openwebui() {
  return {.name = "openwebui",
          .title = "Open WebUI",
          .install = "pip install open-webui",
          .setup = openwebui_setup};
}

}  // namespace tandem::app::agents
