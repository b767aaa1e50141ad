#include "app/agents/agent.h"

#include <algorithm>

namespace tandem::app::agents {

#define X(name) Agent name();
#include "app/agents/registry.inc"
#undef X

const std::vector<Agent>& all() {
  static const std::vector<Agent> kAgents = {
#define X(name) name(),
#include "app/agents/registry.inc"
#undef X
  };
  return kAgents;
}

const Agent* find(const std::string& name) {
  const auto found = std::ranges::find(all(), name, &Agent::name);
  return found == all().end() ? nullptr : &*found;
}

}  // namespace tandem::app::agents
