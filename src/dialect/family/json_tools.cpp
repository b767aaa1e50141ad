// Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, MiMo, and many that were trained after them.
#include "dialect/dialect.h"
#include "dialect/json_body.h"

namespace tandem::dialect {

Dialect json_tools() {
  return {
      .name = "json_tools",
      .signs = {.in_template = {{"<tool_call>", "tool_call.name"}, {"<tool_call>", "\\\"name\\\""}},
                .parser_names = {"json_tools", "hermes"},
                .order = 60},
      .syntax = std::make_shared<JsonBody>(
          JsonBodyMarkers{.starts = {"<tool_call>"}, .end = "</tool_call>"}),
      .layout = {.call = "<tool_call>\n{\"name\": \"$name\", \"arguments\": $arguments}\n"
                         "</tool_call>",
                 .between = "\n"}};
}

}  // namespace tandem::dialect
