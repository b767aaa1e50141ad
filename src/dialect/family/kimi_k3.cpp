// Kimi K3: elements opened and closed by tokens, which say the type of each value.
#include "dialect/dialect.h"
#include "dialect/tagged_calls.h"

namespace tandem::dialect {

Dialect kimi_k3() {
  return {.name = "kimi_k3",
          .signs = {.in_template = {{"<|open|>tools<|sep|>"}},
                    .in_vocabulary = {"<|open|>", "<|close|>", "<|sep|>"},
                    .parser_names = {"kimi_k3"},
                    .order = 58},
          .syntax = std::make_shared<TaggedCalls>(
              TaggedCallMarkers{.starts = {"<|open|>tools<|sep|>"},
                                .end = "<|close|>tools<|sep|>",
                                .call_open = "<|open|>call",
                                .tag_end = "<|sep|>",
                                .call_close = "<|close|>call<|sep|>",
                                .parameter_open = "<|open|>argument",
                                .parameter_close = "<|close|>argument<|sep|>",
                                .name_attribute = "tool",
                                .key_attribute = "key",
                                .type_attribute = "type",
                                .json_open = "<|open|>json",
                                .json_close = "<|close|>json<|sep|>",
                                .untyped = Untyped::kJson}),
          .layout = {.before = "<|open|>tools<|sep|>",
                     .call = "<|open|>call tool=\"$name\" index=\"$id\"<|sep|>$parameters"
                             "<|close|>call<|sep|>",
                     .after = "<|close|>tools<|sep|>",
                     .parameter = "<|open|>argument key=\"$key\" type=\"$type\"<|sep|>$value"
                                  "<|close|>argument<|sep|>",
                     .id = "$ordinal",
                     .id_pattern = "[0-9]{1,3}",
                     .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
