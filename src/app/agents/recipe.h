// A client's setup with its folder filled in: printed as a shell script, as JSON, or carried out.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "app/agents/agent.h"
#include "base/result.h"

namespace tandem::app::agents {

struct Recipe {
  const Agent& agent;
  const ServerFacts& server;
  AgentSetup setup;  // $FOLDER filled in
  std::filesystem::path folder;
  bool needs_key = false;
};

Recipe make_recipe(const Agent& agent,
                   const ServerFacts& server,
                   const std::filesystem::path& folder,
                   bool needs_key);

/// A script for sh that sets the client up and starts it. The key stays a variable.
std::string shell_script(const Recipe& recipe);

/// The same for programs.
nlohmann::ordered_json recipe_json(const Recipe& recipe);

/// Writes the files into `folder`, which is made. Where `keeps`, a file of other content is left as
/// it is: kConflict. Errors: kIo.
Status write_files(const Recipe& recipe, const std::filesystem::path& folder, bool keeps);

}  // namespace tandem::app::agents
