// DeepSeek-V3.2: DSML tags, which say of each value whether it is a string.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect deepseek_v32() {
  return {.name = "deepseek_v32",
          .signs = {.in_template = {{"function_calls>", "DSML"}},
                    .parser_names = {"deepseek_v32"},
                    .order = 14},
          .syntax = std::make_shared<TaggedCalls>(
              TaggedCallMarkers{.starts = {"<｜DSML｜function_calls>"},
                                .end = "</｜DSML｜function_calls>",
                                .call_open = "<｜DSML｜invoke",
                                .call_close = "</｜DSML｜invoke>",
                                .parameter_open = "<｜DSML｜parameter",
                                .parameter_close = "</｜DSML｜parameter>",
                                .name_attribute = "name",
                                .key_attribute = "name",
                                .type_attribute = "string",
                                .untyped = Untyped::kJson}),
          .layout = {.before = "<｜DSML｜function_calls>\n",
                     .call = "<｜DSML｜invoke name=\"$name\">\n$parameters</｜DSML｜invoke>\n",
                     .after = "</｜DSML｜function_calls>",
                     .parameter = "<｜DSML｜parameter name=\"$key\" string=\"$string\">$value"
                                  "</｜DSML｜parameter>\n",
                     .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
