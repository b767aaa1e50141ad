// Runs a graph on the calling thread, without the hop to a stream thread that mx::eval costs for
// each node.
#pragma once

#include "tensor/cpu_op.h"

namespace tandem::tensor {

/// Makes `root` available: walks its unscheduled inputs depth first, runs CpuOps and sums of equal
/// float32 shapes here, and gives any other node to mx::eval (10 to 80 µs each: keep them out of
/// the hot path).
///
/// Requires  the engine thread; the CPU device
/// Errors    what a node throws; the nodes not yet run stay unscheduled: try again
/// Cost      about 0.3 µs a node; an input is released as soon as its last user has run
void run_graph(array root);

}  // namespace tandem::tensor
