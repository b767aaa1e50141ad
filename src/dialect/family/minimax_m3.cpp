// MiniMax-M3: elements named after the parameters, each tag behind a token of its own.
#include "dialect/dialect.h"
#include "dialect/nested_calls.h"

namespace tandem::dialect {

Dialect minimax_m3() {
  static const std::string kMark = "]<]minimax[>[";
  return {.name = "minimax_m3",
          .signs = {.in_template = {{kMark}},
                    .in_vocabulary = {kMark, "<tool_call>"},
                    .parser_names = {"minimax_m3"},
                    .order = 9},
          .syntax = std::make_shared<NestedCalls>(NestedCallMarkers{
              .mark = kMark, .block = "tool_call", .call = "invoke", .item = "item"}),
          .layout = {.before = kMark + "<tool_call>\n",
                     .call = kMark + "<invoke name=\"$name\">$parameters" + kMark + "</invoke>\n",
                     .after = kMark + "</tool_call>",
                     .parameter = kMark + "<$key>$value" + kMark + "</$key>",
                     .spelling = Spelling::kNested,
                     .quote = kMark}};
}

}  // namespace tandem::dialect
