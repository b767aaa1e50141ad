#include "app/agents/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace tandem::app::agents {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "$FOLDER";
constexpr std::string_view kKey = "$TANDEM_API_KEY";

std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "-_./:=,@%+";
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string key_lines(const Recipe& recipe) {
  if (recipe.needs_key)
    return fmt::format(": \"${{{}:?the server asks for a key: put it there}}\"\nexport {}\n",
                       kKeyVariable, kKeyVariable);
  return fmt::format("export {}=none  # this server asks for no key\n", kKeyVariable);
}

/// A line that no line of the content is.
std::string end_mark(const std::string& content) {
  std::string mark = "END";
  while (content.find(mark) != std::string::npos) mark += "_";
  return mark;
}

std::string file_lines(const AgentFile& file, const fs::path& folder) {
  const std::string mark = end_mark(file.content);
  return fmt::format("mkdir -p {}\ncat > {} <<'{}'\n{}{}\n", quoted(folder.string()),
                     quoted((folder / file.name).string()), mark, file.content, mark);
}

Status write_file(const fs::path& path, const std::string& content, bool keeps) {
  std::ifstream in(path, std::ios::binary);
  const bool exists = in.is_open();
  const std::string old{std::istreambuf_iterator<char>(in), {}};
  if (exists && old == content) return {};
  if (exists && keeps)
    return Error{ErrorCode::kConflict,
                 fmt::format("{} is there already and was left as it is: add what `tandem agent` "
                             "prints to it by hand",
                             path.string())};
  std::error_code made;
  fs::create_directories(path.parent_path(), made);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (made || !out) return Error{ErrorCode::kIo, fmt::format("cannot write {}", path.string())};
  return {};
}

}  // namespace

Recipe make_recipe(const Agent& agent,
                   const ServerFacts& server,
                   const fs::path& folder,
                   bool needs_key) {
  Recipe recipe{.agent = agent,
                .server = server,
                .setup = agent.setup(server),
                .folder = folder,
                .needs_key = needs_key};
  for (auto& [name, value] : recipe.setup.environment) {
    if (value.starts_with(kFolder)) value = folder.string() + value.substr(kFolder.size());
  }
  return recipe;
}

std::string shell_script(const Recipe& recipe) {
  const AgentSetup& setup = recipe.setup;
  std::string out = fmt::format("# {} with {} at {}, {} tokens of context\n", recipe.agent.title,
                                recipe.server.model, recipe.server.url, recipe.server.context);
  for (const std::string& note : setup.notes) out += fmt::format("# {}\n", note);
  if (setup.command.empty()) return out;
  out += fmt::format("# not installed? {}\n", recipe.agent.install);
  out += key_lines(recipe);
  for (const AgentFile& file : setup.files) out += file_lines(file, recipe.folder);
  for (const auto& [name, value] : setup.environment)
    out += fmt::format("export {}={}\n", name,
                       value == kKey ? fmt::format("\"{}\"", kKey) : quoted(value));
  std::string command;
  for (const std::string& word : setup.command)
    command += (command.empty() ? "" : " ") + quoted(word);
  return out + command + "\n";
}

nlohmann::ordered_json recipe_json(const Recipe& recipe) {
  using Json = nlohmann::ordered_json;
  Json environment = Json::object();
  for (const auto& [name, value] : recipe.setup.environment) environment[name] = value;
  Json files = Json::array();
  for (const AgentFile& file : recipe.setup.files)
    files.push_back({{"path", (recipe.folder / file.name).string()}, {"content", file.content}});
  return {{"name", recipe.agent.name},
          {"server",
           {{"url", recipe.server.url},
            {"model", recipe.server.model},
            {"context", recipe.server.context},
            {"needs_key", recipe.needs_key}}},
          {"install", recipe.agent.install},
          {"environment", environment},
          {"files", files},
          {"command", recipe.setup.command},
          {"notes", recipe.setup.notes}};
}

Status write_files(const Recipe& recipe, const fs::path& folder, bool keeps) {
  for (const AgentFile& file : recipe.setup.files) {
    if (const Status wrote = write_file(folder / file.name, file.content, keeps); !wrote)
      return wrote;
  }
  return {};
}

}  // namespace tandem::app::agents
