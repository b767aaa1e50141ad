// How many answers a server remembers to show them as they were drawn, and where.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "protocol/metrics.h"
#include "replay/memory.h"
#include "store/store.h"

namespace tandem::app {

struct ReplayOptions {
  bool none = false;
  uint32_t max_mb = 64;
  uint32_t max_age_hours = 7 * 24;
};

void declare(CLI::App& app, ReplayOptions& options);

/// Null with --no-replay. The store (null: what is remembered ends with the process) and the clock
/// must outlive it.
std::shared_ptr<replay::Memory> make_memory(const ReplayOptions& options,
                                            store::Store* store,
                                            const Clock& clock);

/// The key of handles on answers, from the file replay.key in the folder, which is made with mode
/// 0600 when there is none. Without a folder: a key for this process. Errors: kIo (cannot be read
/// or made), kInvalid (others may read it, or it is no key).
Result<std::string> handle_key(const std::filesystem::path& folder);

void write_metrics(protocol::MetricsText& out, replay::Memory& memory);

}  // namespace tandem::app
