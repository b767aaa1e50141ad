// Granite 3: a list of JSON objects behind a marker.
#include "dialect/dialect.h"
#include "dialect/json_body.h"

namespace tandem::dialect {

Dialect granite() {
  return {.name = "granite",
          .signs = {.in_template = {{"<|tool_call|>"}}, .parser_names = {"granite"}, .order = 18},
          .syntax = std::make_shared<JsonBody>(JsonBodyMarkers{.starts = {"<|tool_call|>"}}),
          .layout = {.before = "<|tool_call|>[",
                     .call = "{\"name\": \"$name\", \"arguments\": $arguments}",
                     .between = ", ",
                     .after = "]"}};
}

}  // namespace tandem::dialect
