// DeepSeek V3.1: a section of calls, arguments right behind the name.
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect deepseek_v3();

Dialect deepseek_v31() {
  Dialect dialect = deepseek_v3();
  dialect.name = "deepseek_v31";
  dialect.signs = {.in_template = {{"<｜tool▁calls▁begin｜>"}},
                   .in_vocabulary = {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"},
                   .parser_names = {"deepseek_v31"},
                   .order = 16};
  dialect.layout = {.before = "<｜tool▁calls▁begin｜>",
                    .call = "<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",
                    .after = "<｜tool▁calls▁end｜>"};
  return dialect;
}

}  // namespace tandem::dialect
