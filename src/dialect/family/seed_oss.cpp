// Seed-OSS: the tags of Qwen3-Coder in a block of its own, without line breaks around values.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect seed_oss() {
  return {
      .name = "seed_oss",
      .signs = {.in_template = {{"<seed:tool_call>"}}, .parser_names = {"seed_oss"}, .order = 10},
      .syntax = std::make_shared<TaggedCalls>(TaggedCallMarkers{.starts = {"<seed:tool_call>"},
                                                                .end = "</seed:tool_call>",
                                                                .call_open = "<function",
                                                                .call_close = "</function>",
                                                                .parameter_open = "<parameter",
                                                                .parameter_close = "</parameter>"}),
      .layout = {.call = "<seed:tool_call>\n<function=$name>\n$parameters</function>\n"
                         "</seed:tool_call>",
                 .between = "\n",
                 .parameter = "<parameter=$key>$value</parameter>\n",
                 .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
