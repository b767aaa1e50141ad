// Qwen3-Coder, Nemotron 3: functions and parameters in tags.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect qwen3_coder() {
  return {
      .name = "qwen3_coder",
      .signs = {.in_template = {{"<tool_call>\\n<function="}, {"<tool_call>\n<function="}},
                .parser_names = {"qwen3_coder", "qwen3_xml"},
                .order = 41},
      .syntax = std::make_shared<TaggedCalls>(TaggedCallMarkers{.starts = {"<tool_call>"},
                                                                .end = "</tool_call>",
                                                                .call_open = "<function",
                                                                .call_close = "</function>",
                                                                .parameter_open = "<parameter",
                                                                .parameter_close = "</parameter>",
                                                                .has_line_breaks = true}),
      .layout = {.call = "<tool_call>\n<function=$name>\n$parameters</function>\n</tool_call>",
                 .between = "\n",
                 .parameter = "<parameter=$key>\n$value\n</parameter>\n",
                 .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
