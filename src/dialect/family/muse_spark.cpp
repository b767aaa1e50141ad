// Muse Spark: invocations and parameters in tags of its own namespace.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect muse_spark() {
  return {.name = "muse_spark",
          .signs = {.in_template = {{"<atem:function_calls>"}},
                    .parser_names = {"muse_spark"},
                    .order = 55},
          .syntax = std::make_shared<TaggedCalls>(
              TaggedCallMarkers{.starts = {"<atem:function_calls>"},
                                .end = "</atem:function_calls>",
                                .call_open = "<atem:invoke",
                                .call_close = "</atem:invoke>",
                                .parameter_open = "<atem:parameter",
                                .parameter_close = "</atem:parameter>",
                                .name_attribute = "name",
                                .key_attribute = "name",
                                .untyped = Untyped::kJson}),
          .layout = {.before = "<atem:function_calls>\n",
                     .call = "<atem:invoke name=\"$name\">\n$parameters</atem:invoke>\n",
                     .after = "</atem:function_calls>",
                     .parameter = "<atem:parameter name=\"$key\">$value</atem:parameter>\n",
                     .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
