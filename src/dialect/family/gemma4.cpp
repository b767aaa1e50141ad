// Gemma 4: call:NAME{key:value}, strings between tokens of their own.
#include "dialect/bare_calls.h"
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect gemma4() {
  return {.name = "gemma4",
          .signs = {.in_template = {{"<|tool_call>", "<tool_call|>"}},
                    .parser_names = {"gemma4"},
                    .order = 11},
          .syntax = std::make_shared<BareCalls>(
              BareCallMarkers{.start = "<|tool_call>", .end = "<tool_call|>", .quote = "<|\"|>"}),
          .layout = {.call = "<|tool_call>call:$name$arguments<tool_call|>",
                     .spelling = Spelling::kGemma,
                     .quote = "<|\"|>",
                     .sorts_keys = true}};
}

}  // namespace tandem::dialect
