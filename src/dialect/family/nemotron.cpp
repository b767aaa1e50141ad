// Nemotron before 3: a list of JSON objects in a block. Nemotron 3 writes as Qwen3-Coder.
#include "dialect/dialect.h"
#include "dialect/json_body.h"

namespace tandem::dialect {

Dialect nemotron() {
  return {.name = "nemotron",
          .signs = {.in_template = {{"<TOOLCALL>"}}, .parser_names = {"nemotron"}, .order = 17},
          .syntax = std::make_shared<JsonBody>(
              JsonBodyMarkers{.starts = {"<TOOLCALL>"}, .end = "</TOOLCALL>"}),
          .layout = {.before = "<TOOLCALL>[",
                     .call = "{\"name\": \"$name\", \"arguments\": $arguments}",
                     .between = ", ",
                     .after = "]</TOOLCALL>"}};
}

}  // namespace tandem::dialect
