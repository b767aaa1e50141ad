// FunctionGemma: call:NAME{key:value}, strings between <escape> tokens.
#include "dialect/bare_calls.h"
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect function_gemma() {
  return {.name = "function_gemma",
          .signs = {.in_template = {{"<start_function_call>"}},
                    .parser_names = {"function_gemma"},
                    .order = 12},
          .syntax = std::make_shared<BareCalls>(BareCallMarkers{
              .start = "<start_function_call>", .end = "<end_function_call>", .quote = "<escape>"}),
          .layout = {.call = "<start_function_call>call:$name$arguments<end_function_call>",
                     .spelling = Spelling::kGemma,
                     .quote = "<escape>"}};
}

}  // namespace tandem::dialect
