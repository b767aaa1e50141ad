// LFM2: a list of Python calls with named arguments.
#include "dialect/dialect.h"
#include "dialect/python_calls.h"

namespace tandem::dialect {

Dialect pythonic() {
  return {.name = "pythonic",
          .signs = {.in_template = {{"<|tool_list_start|>"}, {"<|tool_call_start|>"}},
                    .in_vocabulary = {"<|tool_call_start|>", "<|tool_call_end|>"},
                    .parser_names = {"pythonic", "lfm2"},
                    .order = 30},
          .syntax = std::make_shared<PythonCalls>(
              PythonCallMarkers{.starts = {"<|tool_call_start|>"}, .end = "<|tool_call_end|>"}),
          .layout = {.before = "<|tool_call_start|>[",
                     .call = "$name($parameters)",
                     .between = ", ",
                     .after = "]<|tool_call_end|>",
                     .parameter = "$key=$value",
                     .between_parameters = ", ",
                     .spelling = Spelling::kPython}};
}

}  // namespace tandem::dialect
