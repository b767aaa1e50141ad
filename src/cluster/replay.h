// Replays a plan log on a lone rank, to find where an execution went another way.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/runner.h"
#include "plan/plan_log.h"

namespace tandem::cluster {

/// Executes every record and compares the state hash after each; a record of another epoch resets
/// the runner to that epoch. Returns the last hash. Errors: kCorrupt (a hash differs: names epoch,
/// sequence and both hashes), or the runner's. Plans that draw need a runner that does.
Result<uint64_t> replay(const plan::PlanLog& log, engine::Runner& runner);

}  // namespace tandem::cluster
