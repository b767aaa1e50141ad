// Llama 3.1 to 3.3: a JSON object as the whole answer, or behind <|python_tag|>, or a built-in
// tool as name.call(key=value).
#include "dialect/any_syntax.h"
#include "dialect/dialect.h"
#include "dialect/json_body.h"
#include "dialect/python_calls.h"

namespace tandem::dialect {

Dialect llama3() {
  const std::string tag = "<|python_tag|>";
  std::vector<SyntaxPtr> parts = {
      std::make_shared<JsonBody>(JsonBodyMarkers{.starts = {tag}, .bare = true}),
      std::make_shared<PythonCalls>(
          PythonCallMarkers{.starts = {tag}, .in_list = false, .suffix = ".call"})};
  return {
      .name = "llama3",
      .signs = {.in_template = {{"<|python_tag|>"}, {"{\"name\": function name, \"parameters\""}},
                .in_vocabulary = {"<|python_tag|>"},
                .parser_names = {"llama3", "llama3_json"},
                .order = 70},
      .syntax = std::make_shared<AnySyntax>(std::move(parts), true),
      .layout = {.call = "{\"name\": \"$name\", \"parameters\": $arguments}",
                 .between = "; ",
                 .mark_after_text = tag}};
}

}  // namespace tandem::dialect
