// tandem privacy: what servers keep on this machine's disk, and its end.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/state_options.h"
#include "store/database.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string folder;
  std::string table;
  bool json = false;
  CLI::App* show = nullptr;
};

std::string date(int64_t microseconds) {
  const std::time_t seconds = microseconds / 1'000'000;
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(seconds));
}

Json to_json(const store::TableFigures& table) {
  return {{"what", table.name},
          {"entries", table.entries},
          {"bytes", table.bytes},
          {"oldest", table.oldest / 1'000'000},
          {"newest", table.newest / 1'000'000}};
}

std::string to_text(const store::Database& database,
                    const std::vector<store::TableFigures>& tables) {
  std::string out =
      fmt::format("{}: {} bytes on disk\n", database.file().string(), database.file_bytes());
  const auto aside = database.files_aside();
  for (const std::string& name : aside) {
    out += fmt::format("{}: damaged, set aside, and not read any more: purge erases it\n", name);
  }
  if (tables.empty()) return out + (aside.empty() ? "nothing is kept\n" : "nothing else is kept\n");
  for (const store::TableFigures& table : tables) {
    out += fmt::format("{}: {} entries, {} bytes, from {} to {}\n", table.name, table.entries,
                       table.bytes, date(table.oldest), date(table.newest));
  }
  return out;
}

Status show(const Options& options, const std::filesystem::path& folder) {
  const auto database = store::Database::open_existing({.folder = folder});
  if (!database) return database.error();
  const auto tables = (*database)->figures();
  if (!tables) return tables.error();
  if (!options.json) {
    std::fputs(to_text(**database, *tables).c_str(), stdout);
    return {};
  }
  Json out{{"file", (*database)->file().string()},
           {"bytes", (*database)->file_bytes()},
           {"damaged", (*database)->files_aside()},
           {"tables", Json::array()}};
  for (const store::TableFigures& table : *tables) out["tables"].push_back(to_json(table));
  std::puts(out.dump().c_str());
  return {};
}

std::string to_text(const store::Purged& purged, const std::string& file) {
  std::string out =
      purged.whole
          ? fmt::format("{} could not be written: it was erased, and a new one begun\n", file)
          : fmt::format("{} entries were erased from {}\n", purged.entries, file);
  for (const std::string& name : purged.damaged) {
    out += fmt::format("{}, which was damaged, was erased too\n", name);
  }
  for (const std::string& name : purged.left) {
    out +=
        fmt::format("{}, which is damaged, may hold more: purge without --only erases it\n", name);
  }
  return out;
}

Status purge(const Options& options, const std::filesystem::path& folder) {
  const auto purged = store::Database::purge_existing({.folder = folder}, options.table);
  if (!purged && purged.error().code == ErrorCode::kCorrupt) {
    return Error{ErrorCode::kCorrupt, purged.error().message + ": purge without --only erases it"};
  }
  if (!purged) return purged.error();
  std::fputs(to_text(*purged, (folder / "state.db").string()).c_str(), stdout);
  return {};
}

int run(const Options& options) {
  const std::filesystem::path folder = state_folder(options.folder);
  if (folder.empty()) return fail("privacy", "there is no HOME: name --state-dir");
  const Status done = options.show->parsed() ? show(options, folder) : purge(options, folder);
  if (!done && done.error().code == ErrorCode::kNotFound) {
    std::printf("nothing is kept: %s\n", done.error().message.c_str());
  } else if (!done) {
    return fail("privacy", done.error().message);
  }
  return flush_output() ? 0 : fail("privacy", "the answer could not be written");
}

void declare_options(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  options.show = app.add_subcommand("show", "Show what is kept, how much and since when");
  CLI::App* purge = app.add_subcommand("purge", "Erase it, beside a running server or without one");
  for (CLI::App* command : {options.show, purge}) {
    command->add_option("--state-dir", options.folder,
                        "Folder of the state [~/.local/state/tandem, or below XDG_STATE_HOME]");
  }
  options.show->add_flag("--json", options.json, "Print JSON");
  purge->add_option("--only", options.table, "One kind alone, by the name that show gives it");
}

}  // namespace

Command privacy() {
  return {.name = "privacy",
          .summary = "Show or erase what servers keep on disk",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
