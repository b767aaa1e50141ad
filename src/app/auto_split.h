// What --split auto means for a checkpoint.
#pragma once

#include <span>

#include "format/checkpoint.h"
#include "topology/split_choice.h"

namespace tandem::app {

/// Decides from the checkpoint's header. One whose sizes cannot be read is split somehow: the ranks
/// refuse such a model by the field's name.
topology::SplitChoice auto_split(const format::Checkpoint& checkpoint,
                                 uint32_t ranks,
                                 std::span<const double> shares,
                                 topology::Link link);

}  // namespace tandem::app
