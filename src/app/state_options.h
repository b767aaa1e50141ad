// Where a server keeps what is to outlive it, and how much.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/blob_table.h"
#include "store/store.h"

namespace tandem::app {

struct StateOptions {
  std::string folder = {};  // empty: default_state_folder()
  uint32_t max_mb = 256;
  uint32_t max_age_days = 30;
  bool none = false;
};

void declare(CLI::App& app, StateOptions& options);

/// tandem in XDG_STATE_HOME, else in .local/state of HOME; empty when neither is set.
std::filesystem::path default_state_folder();

/// The named folder, else the default one; empty when there is none.
std::filesystem::path state_folder(const std::string& named);

/// What responses may take of it.
store::Limits state_limits(const StateOptions& options);

/// The state of a server; null with --no-state. A named folder that cannot be used is an error; a
/// default one is done without, with a warning.
Result<std::unique_ptr<store::Store>> open_state(const StateOptions& options);

}  // namespace tandem::app
