// Kimi K2: a section of calls, each with an id that names the function.
#include "dialect/dialect.h"
#include "dialect/headed_json.h"

namespace tandem::dialect {

Dialect kimi_k2() {
  return {
      .name = "kimi_k2",
      .signs = {.in_template = {{"<|tool_calls_section_begin|>"}},
                .in_vocabulary = {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
                .parser_names = {"kimi_k2"},
                .order = 42},
      .syntax = std::make_shared<HeadedJson>(
          HeadedJsonMarkers{.starts = {"<|tool_calls_section_begin|>"},
                            .end = "<|tool_calls_section_end|>",
                            .call_begins = {"<|tool_call_begin|>"},
                            .head_ends = {"<|tool_call_argument_begin|>"},
                            .call_ends = {"<|tool_call_end|>"},
                            .name_is_id = true}),
      .layout = {.before = "<|tool_calls_section_begin|>",
                 .call = "<|tool_call_begin|>$id<|tool_call_argument_begin|>$arguments"
                         "<|tool_call_end|>",
                 .after = "<|tool_calls_section_end|>",
                 .id = "functions.$name:$index",
                 .id_pattern = "[0-9]{1,3}"}};
}

}  // namespace tandem::dialect
