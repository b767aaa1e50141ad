// Laguna: the form of GLM-4.7, under a parser name of its own.
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect glm47();

Dialect laguna() {
  Dialect dialect = glm47();
  dialect.name = "laguna";
  dialect.signs = {.parser_names = {"laguna"}};
  return dialect;
}

}  // namespace tandem::dialect
