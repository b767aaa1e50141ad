// How a coding client is pointed at this server, as data: one file a client in this folder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::app::agents {

/// Names the variable that holds the key; configurations refer to it and never hold the key.
inline constexpr const char* kKeyVariable = "TANDEM_API_KEY";

/// What a client is told about the server.
struct ServerFacts {
  std::string url = {};     // without /v1
  std::string model = {};   // its id there
  uint64_t context = 0;     // tokens of prompt and answer together
  uint64_t max_output = 0;  // tokens
};

struct AgentFile {
  std::string name;  // inside the client's own folder
  std::string content;
};

struct AgentSetup {
  /// Variables; "$TANDEM_API_KEY" stands for the key, "$FOLDER" for the client's own folder.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<AgentFile> files = {};
  std::vector<std::string> command = {};  // empty: it is not started from a command line
  std::vector<std::string> notes = {};    // what a user does or should know
};

struct Agent {
  std::string name;
  std::string title;    // as its makers call it
  std::string install;  // how one gets it
  /// Folder under HOME where the client looks for `files` by itself; empty: it has none.
  std::string usual_folder = {};
  AgentSetup (*setup)(const ServerFacts&) = nullptr;
};

/// Every client of registry.inc, in its order.
const std::vector<Agent>& all();
/// Null when there is none of that name.
const Agent* find(const std::string& name);

}  // namespace tandem::app::agents
