// Command R7B and later of Cohere: a list of JSON objects with ids in a block.
#include "dialect/dialect.h"
#include "dialect/json_body.h"

namespace tandem::dialect {

Dialect command_r() {
  return {.name = "command_r",
          .signs = {.in_template = {{"<|START_ACTION|>"}},
                    .parser_names = {"command_r", "cohere"},
                    .order = 19},
          .syntax = std::make_shared<JsonBody>(
              JsonBodyMarkers{.starts = {"<|START_ACTION|>"}, .end = "<|END_ACTION|>"}),
          .layout = {.before = "<|START_ACTION|>[\n",
                     .call = "    {\"tool_call_id\": \"$id\", \"tool_name\": \"$name\", "
                             "\"parameters\": $arguments}",
                     .between = ",\n",
                     .after = "\n]<|END_ACTION|>",
                     .id = "$index",
                     .id_pattern = "[0-9]{1,3}"}};
}

}  // namespace tandem::dialect
