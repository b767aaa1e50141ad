#include "gen/check_index_reuse.h"

#include <fmt/format.h>

namespace tandem::gen {

Status check_index_reuse(uint32_t positions, const Limits& limits) {
  if (positions == 0 || (limits.chooses_blocks && positions <= kMostIndexReuse)) return {};
  if (limits.chooses_blocks)
    return Error{
        ErrorCode::kInvalid,
        fmt::format("index_reuse must be from 0 to {}, got {}", kMostIndexReuse, positions),
        "index_reuse"};
  return Error{ErrorCode::kInvalid,
               "index_reuse is for models whose layers choose blocks of keys by index heads; this "
               "model has none: leave it out",
               "index_reuse"};
}

}  // namespace tandem::gen
