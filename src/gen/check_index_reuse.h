// Whether a request's index_reuse can be had.
#pragma once

#include "gen/generator.h"

namespace tandem::gen {

/// kInvalid, field "index_reuse": more than kMostIndexReuse, or a model that does not choose
/// blocks.
Status check_index_reuse(uint32_t positions, const Limits& limits);

}  // namespace tandem::gen
