// For models that show no dialect: asks for the JSON form of Hermes, and reads the forms into which
// models fall that saw several.
#include "dialect/any_syntax.h"
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect json_tools();
Dialect qwen3_coder();
Dialect glm47();
Dialect mistral();
Dialect pythonic();

Dialect generic() {
  Dialect dialect = json_tools();
  std::vector<SyntaxPtr> parts = {dialect.syntax};
  for (const Dialect& other : {qwen3_coder(), glm47(), mistral(), pythonic()}) {
    parts.push_back(other.syntax);
  }
  dialect.name = "generic";
  dialect.signs = {.parser_names = {"generic"}};
  dialect.syntax = std::make_shared<AnySyntax>(std::move(parts), false);
  return dialect;
}

}  // namespace tandem::dialect
