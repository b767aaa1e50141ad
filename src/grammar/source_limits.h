// Bounds on grammars that are checked before anything is compiled: what would be slow by its size.
#pragma once

#include "base/result.h"
#include "gen/request.h"

namespace tandem::grammar {

/// Bytes of a source, depth of brackets, of JSON and of schemas, patterns of a schema and their
/// repetitions. Errors: kInvalid. Linear in the source.
Status check_source(const gen::Grammar& grammar);

}  // namespace tandem::grammar
