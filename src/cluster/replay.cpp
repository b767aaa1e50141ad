#include "cluster/replay.h"

#include <fmt/format.h>

#include <optional>

namespace tandem::cluster {

Result<uint64_t> replay(const plan::PlanLog& log, engine::Runner& runner) {
  std::optional<uint32_t> epoch;
  uint64_t hash = 0;
  for (const plan::LogRecord& record : log.records) {
    if (epoch != record.plan.epoch) {
      epoch = record.plan.epoch;
      if (const Status begun = runner.reset(*epoch); !begun) return begun.error();
    }
    if (const Status issued = runner.issue(record.plan); !issued) return issued.error();
    const auto result = runner.complete();
    if (!result) return result.error();
    hash = result->state_hash;
    if (hash == record.state_hash) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("epoch {}, sequence {}: state hash {:016x}, the log has {:016x}",
                             *epoch, record.plan.sequence, hash, record.state_hash)};
  }
  return hash;
}

}  // namespace tandem::cluster
