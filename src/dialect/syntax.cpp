#include "dialect/syntax.h"

namespace tandem::dialect {

Task<bool> Syntax::read_all(Scope) const { co_return false; }

}  // namespace tandem::dialect
