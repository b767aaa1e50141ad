#include "app/state_options.h"

#include <chrono>
#include <cstdlib>

#include "base/log.h"

namespace tandem::app {
namespace {

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

}  // namespace

void declare(CLI::App& app, StateOptions& options) {
  const auto no_state =
      app.add_flag("--no-state", options.none, "Keep nothing on disk, whatever requests ask for");
  app.add_option("--state-dir", options.folder,
                 "Folder of what is kept [~/.local/state/tandem, or below XDG_STATE_HOME]")
      ->excludes(no_state);
  app.add_option("--state-max-mb", options.max_mb,
                 "Megabytes of responses to keep; the least recently used go first")
      ->check(CLI::Range(1U, 1U << 20))
      ->capture_default_str();
  app.add_option("--state-max-age-days", options.max_age_days, "Days to keep responses for")
      ->check(CLI::Range(1U, 36500U))
      ->capture_default_str();
}

std::filesystem::path default_state_folder() {
  const std::filesystem::path given = variable("XDG_STATE_HOME");
  if (!given.empty()) return given / "tandem";
  const std::filesystem::path home = variable("HOME");
  return home.empty() ? home : home / ".local" / "state" / "tandem";
}

std::filesystem::path state_folder(const std::string& named) {
  return named.empty() ? default_state_folder() : std::filesystem::path(named);
}

store::Limits state_limits(const StateOptions& options) {
  return {.max_bytes = uint64_t{options.max_mb} << 20,
          .max_age = std::chrono::days(options.max_age_days)};
}

Result<std::unique_ptr<store::Store>> open_state(const StateOptions& options) {
  if (options.none) return std::unique_ptr<store::Store>();
  const std::filesystem::path folder = state_folder(options.folder);
  auto opened = folder.empty() ? Error{ErrorCode::kNotFound, "there is no HOME to keep state in"}
                               : store::Store::open({.folder = folder});
  if (opened || !options.folder.empty()) return opened;
  TANDEM_LOG(kWarn, "nothing is kept, as with --no-state: {}", opened.error().message);
  return std::unique_ptr<store::Store>();
}

}  // namespace tandem::app
