// MiniMax-M2: invocations and parameters in tags, several in a block.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect minimax_m2() {
  return {
      .name = "minimax_m2",
      .signs = {.in_template = {{"<minimax:tool_call>"}},
                .parser_names = {"minimax_m2"},
                .order = 10},
      .syntax = std::make_shared<TaggedCalls>(TaggedCallMarkers{.starts = {"<minimax:tool_call>"},
                                                                .end = "</minimax:tool_call>",
                                                                .call_open = "<invoke",
                                                                .call_close = "</invoke>",
                                                                .parameter_open = "<parameter",
                                                                .parameter_close = "</parameter>",
                                                                .name_attribute = "name",
                                                                .key_attribute = "name"}),
      .layout = {.before = "<minimax:tool_call>\n",
                 .call = "<invoke name=\"$name\">\n$parameters</invoke>\n",
                 .after = "</minimax:tool_call>",
                 .parameter = "<parameter name=\"$key\">$value</parameter>\n",
                 .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
