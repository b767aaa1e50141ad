// MiniCPM5: functions and parameters in tags, without a block around them.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect minicpm5() {
  return {.name = "minicpm5",
          .signs = {.in_template = {{"<function name=\"", "<param name=\""}},
                    .parser_names = {"minicpm5"},
                    .order = 45},
          .syntax = std::make_shared<TaggedCalls>(TaggedCallMarkers{.starts = {"<function"},
                                                                    .call_open = "<function",
                                                                    .call_close = "</function>",
                                                                    .parameter_open = "<param",
                                                                    .parameter_close = "</param>",
                                                                    .name_attribute = "name",
                                                                    .key_attribute = "name",
                                                                    .has_cdata = true}),
          .layout = {.call = "<function name=\"$name\">$parameters</function>",
                     .between = "\n",
                     .parameter = "<param name=\"$key\">$value</param>",
                     .spelling = Spelling::kCdata}};
}

}  // namespace tandem::dialect
