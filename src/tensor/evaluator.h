// Runs a graph on the calling thread, without the hop to a stream thread that mx::eval costs for
// each node.
#pragma once

#include "tensor/cpu_op.h"
#include "tensor/tape.h"

namespace tandem::tensor {

/// Makes `root` available: walks its unscheduled inputs depth first, runs CpuOps and sums of equal
/// float32 shapes here, and gives any other node to mx::eval (10 to 80 µs each: keep them out of
/// the hot path). With a tape, the calls are added to it in their order; it gives up when a node
/// has none.
///
/// Requires  the engine thread; the CPU device
/// Errors    what a node throws; the nodes not yet run stay unscheduled: try again
/// Cost      about 0.3 µs a node that lies in a cache, 5 µs where weights have passed through it;
///           an input is released as soon as its last user has run
void run_graph(array root, Tape* tape = nullptr);

/// Nodes that run_graph has given to mx::eval on this thread, so that tests find those in a step.
uint64_t stock_nodes();

}  // namespace tandem::tensor
