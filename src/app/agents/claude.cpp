// Claude Code: Anthropic's wire, set up by its environment alone.
#include <algorithm>

#include "app/agents/agent.h"

namespace tandem::app::agents {
namespace {

constexpr uint64_t kClaudeOutput = 32000;  // what it asks for by itself

AgentSetup claude_setup(const ServerFacts& server) {
  return {.environment = {{"ANTHROPIC_BASE_URL", server.url},
                          {"ANTHROPIC_AUTH_TOKEN", "$TANDEM_API_KEY"},
                          {"ANTHROPIC_MODEL", server.model},
                          // Side requests, such as titles, name models of their own.
                          {"ANTHROPIC_DEFAULT_HAIKU_MODEL", server.model},
                          {"ANTHROPIC_DEFAULT_SONNET_MODEL", server.model},
                          {"ANTHROPIC_DEFAULT_OPUS_MODEL", server.model},
                          {"CLAUDE_CODE_MAX_CONTEXT_TOKENS", std::to_string(server.context)},
                          {"CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                           std::to_string(std::min(server.max_output, kClaudeOutput))},
                          {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
                          {"DISABLE_AUTOUPDATER", "1"}},
          .command = {"claude"},
          .notes = {"one task without a conversation: claude -p 'TASK' --allowedTools "
                    "Read,Edit,Write,Bash"}};
}

}  // namespace

Agent claude() {
  return {.name = "claude",
          .title = "Claude Code",
          .install = "npm install -g @anthropic-ai/claude-code",
          .setup = claude_setup};
}

}  // namespace tandem::app::agents
