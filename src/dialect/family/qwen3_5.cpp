// Qwen3.5: the tags of Qwen3-Coder, with thinking; its templates spell null as None.
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect qwen3_coder();

Dialect qwen3_5() {
  Dialect dialect = qwen3_coder();
  dialect.name = "qwen3_5";
  dialect.signs = {.in_template = {{"<tool_call>\\n<function=", "<think>"},
                                   {"<tool_call>\n<function=", "<think>"}},
                   .parser_names = {"qwen3_5"},
                   .order = 40};
  return dialect;
}

}  // namespace tandem::dialect
