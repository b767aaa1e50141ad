// Runs steps of usual sizes before a model is called ready.
#pragma once

#include "runner/model_runner.h"

namespace tandem::runner {

/// On GPUs the first step of a kind compiles or loads its kernels, for seconds. Leaves the runner
/// in a state that the next reset() clears.
///
/// Requires  a runner that is the only rank
/// Errors    of the steps
Status warm_up(ModelRunner& runner);

}  // namespace tandem::runner
