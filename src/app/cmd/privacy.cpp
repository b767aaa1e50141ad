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

std::string to_text(const std::string& file,
                    const std::vector<store::TableFigures>& tables,
                    uint64_t bytes) {
  std::string out = fmt::format("{}: {} bytes on disk\n", file, bytes);
  if (tables.empty()) return out + "nothing is kept\n";
  for (const store::TableFigures& table : tables) {
    out += fmt::format("{}: {} entries, {} bytes, from {} to {}\n", table.name, table.entries,
                       table.bytes, date(table.oldest), date(table.newest));
  }
  return out;
}

Status show(store::Database& database, bool json) {
  const auto tables = database.figures();
  if (!tables) return tables.error();
  const std::string file = database.file().string();
  if (json) {
    Json out{{"file", file}, {"bytes", database.file_bytes()}, {"tables", Json::array()}};
    for (const store::TableFigures& table : *tables) out["tables"].push_back(to_json(table));
    std::puts(out.dump().c_str());
  } else {
    std::fputs(to_text(file, *tables, database.file_bytes()).c_str(), stdout);
  }
  return {};
}

Status purge(store::Database& database, const std::string& only) {
  const auto tables = database.figures();
  if (!tables) return tables.error();
  if (const Status done = database.purge(only); !done) return done;
  uint64_t entries = 0;
  for (const store::TableFigures& table : *tables) {
    if (only.empty() || table.name == only || table.name.starts_with(only + ".")) {
      entries += table.entries;
    }
  }
  std::printf("%llu entries were erased from %s\n", static_cast<unsigned long long>(entries),
              database.file().c_str());
  return {};
}

int run(const Options& options) {
  const std::filesystem::path folder = state_folder(options.folder);
  if (folder.empty()) return fail("privacy", "there is no HOME: name --state-dir");
  auto database = store::Database::open_existing({.folder = folder});
  if (!database && database.error().code == ErrorCode::kNotFound) {
    std::printf("nothing is kept: %s\n", database.error().message.c_str());
    return 0;
  }
  if (!database) return fail("privacy", database.error().message);
  const Status done =
      options.show->parsed() ? show(**database, options.json) : purge(**database, options.table);
  if (!done) return fail("privacy", done.error().message);
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
