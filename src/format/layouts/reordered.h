// Integer weights whose inputs are not in the order of their groups.
#pragma once

#include "format/layouts/integer_module.h"

namespace tandem::format {

using GroupIndex = std::vector<int64_t>;  // the group of each input

/// What the module's group_index says. Errors name it: kCorrupt (another shape, no such group).
Result<GroupIndex> read_group_index(const Checkpoint& from, const IntegerModule& module);

/// Whether inputs [0, n) are of group 0, the next n of group 1, and so on.
bool is_in_order(const GroupIndex& index, int64_t groups);

/// Shows the module's weight dense in the type of its scales, (code - zero) * scale rounded once:
/// no affine layout has such groups. A notice says so, since it takes several times the memory.
void add_reordered(IntegerModule module, GroupIndex index, Derivations& derivations);

}  // namespace tandem::format
