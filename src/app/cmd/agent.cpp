// tandem agent: a coding client's ready setup for the running server.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/agents/recipe.h"
#include "app/cache_folder.h"
#include "app/command.h"
#include "app/endpoint.h"
#include "app/key_file.h"
#include "app/server_json.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name;
  std::vector<std::string> arguments;
  std::string url = kDefaultUrl;
  std::string key_file;
  std::string folder;
  bool run = false;
  bool write = false;
  bool json = false;
};

struct Found {
  agents::ServerFacts facts;
  bool needs_key = false;
  std::string key;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string without_version(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  return url;
}

/// The key of the file, else of the environment; empty when there is none.
Result<std::string> find_key(const Options& options) {
  if (options.key_file.empty()) return environment(agents::kKeyVariable);
  const auto keys = read_keys(options.key_file);
  if (!keys) return keys.error();
  return keys->front();
}

Result<net::Response> list_models(const std::string& url, const std::string& key) {
  net::ClientOptions with_key;
  with_key.key = key;
  const auto client = net::Client::make(url, with_key);
  if (!client) return client.error();
  auto response = client->get("/v1/models");
  if (!response)
    return Error{response.error().code,
                 fmt::format("no server answers at {}: {}", url, response.error().message)};
  return response;
}

Result<Found> ask_server(const Options& options) {
  const auto key = find_key(options);
  if (!key) return key.error();
  Found found;
  found.facts.url = without_version(options.url);
  auto response = list_models(found.facts.url, "");
  if (response && response->status == 401) {
    found.needs_key = true;
    found.key = *key;
    if (key->empty())
      return Error{ErrorCode::kUnauthorized,
                   fmt::format("{} asks for a key: name its file with --api-key-file, or put it "
                               "into {}",
                               found.facts.url, agents::kKeyVariable)};
    response = list_models(found.facts.url, *key);
  }
  if (!response) return response.error();
  if (response->status != 200) return Error{ErrorCode::kInvalid, error_message(*response)};
  const auto listed = parse_server_json(response->body);
  const auto& model = first_of(member_of(listed, "data"));
  found.facts.model = text_of(model, "id");
  found.facts.context = number_of(model, "context_length");
  found.facts.max_output = number_of(model, "max_output_tokens");
  if (found.facts.model.empty() || found.facts.context == 0)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} lists no model with a context: is it a tandem server, and has its "
                             "model been loaded?",
                             found.facts.url)};
  return found;
}

Result<fs::path> own_folder(const Options& options) {
  if (!options.folder.empty()) return fs::absolute(options.folder);
  const fs::path cache = cache_folder();
  if (cache.empty())
    return Error{ErrorCode::kNotFound,
                 "there is no cache folder for the client's configuration: set HOME, or name a "
                 "--folder"};
  return cache / "tandem" / "agents" / options.name;
}

/// Becomes the client. Returns only when that fails.
Status become(const agents::Recipe& recipe, const Found& found, const Options& options) {
  if (recipe.setup.command.empty())
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{} is not started from a command line: leave out --run", recipe.agent.title)};
  if (const Status wrote = agents::write_files(recipe, recipe.folder, false); !wrote) return wrote;
  std::error_code ignored;
  fs::create_directories(recipe.folder, ignored);
  const std::string key = found.needs_key ? found.key : "none";
  ::setenv(agents::kKeyVariable, key.c_str(), 1);
  for (const auto& [name, value] : recipe.setup.environment)
    ::setenv(name.c_str(),
             value == std::string("$") + agents::kKeyVariable ? key.c_str() : value.c_str(), 1);
  std::vector<std::string> words = recipe.setup.command;
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return Error{ErrorCode::kNotFound,
               fmt::format("{} cannot be started ({}): install it with: {}", words[0],
                           std::strerror(errno), recipe.agent.install)};
}

Status write_usual(const agents::Recipe& recipe) {
  const std::string home = environment("HOME");
  if (recipe.agent.usual_folder.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} has no file to write: what is printed without --write is all",
                             recipe.agent.title)};
  if (home.empty()) return Error{ErrorCode::kNotFound, "HOME is not set"};
  const fs::path folder = fs::path(home) / recipe.agent.usual_folder;
  if (const Status wrote = agents::write_files(recipe, folder, true); !wrote) return wrote;
  for (const agents::AgentFile& file : recipe.setup.files)
    std::printf("wrote %s\n", (folder / file.name).c_str());
  std::printf("its key is the variable %s\n", agents::kKeyVariable);
  return {};
}

int print(const agents::Recipe& recipe, bool json) {
  const std::string text =
      json ? agents::recipe_json(recipe).dump(2) + "\n" : agents::shell_script(recipe);
  std::fputs(text.c_str(), stdout);
  return flush_output() ? 0 : fail("agent", "the setup could not be written");
}

int run(const Options& options) {
  const agents::Agent* agent = agents::find(options.name);
  if (!options.arguments.empty() && !options.run)
    return fail("agent", "arguments for the client are taken with --run only");
  const auto found = ask_server(options);
  if (!found) return fail("agent", found.error().message);
  const auto folder = own_folder(options);
  if (!folder) return fail("agent", folder.error().message);
  const agents::Recipe recipe =
      agents::make_recipe(*agent, found->facts, *folder, found->needs_key);
  if (!options.run && !options.write) return print(recipe, options.json);
  const Status done = options.run ? become(recipe, *found, options) : write_usual(recipe);
  return done ? 0 : fail("agent", done.error().message);
}

void declare_options(CLI::App& app, Options& options) {
  std::vector<std::string> names;
  for (const agents::Agent& agent : agents::all()) names.push_back(agent.name);
  app.add_option("client", options.name, "Which client")->required()->check(CLI::IsMember(names));
  app.add_option("arguments", options.arguments, "Of the client, after --, with --run");
  app.add_option("--url", options.url, "Where the server is")->capture_default_str();
  app.add_option("--api-key-file", options.key_file, "File whose first key is the server's");
  app.add_option("--folder", options.folder,
                 "The client's own folder here [tandem/agents/CLIENT in the cache folder]");
  CLI::Option* start = app.add_flag("--run", options.run,
                                    "Write the folder and start the client, instead of printing");
  CLI::Option* write = app.add_flag(
      "--write", options.write,
      "Write the configuration where the client looks for it by itself; what is there stays");
  CLI::Option* json = app.add_flag("--json", options.json, "Print JSON");
  write->excludes(start);
  json->excludes(start)->excludes(write);
}

}  // namespace

Command agent() {
  return {.name = "agent",
          .summary = "Print or run a coding client's setup for the running server",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
