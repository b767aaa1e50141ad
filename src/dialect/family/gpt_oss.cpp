// gpt-oss: Harmony messages, whose channels tell thinking from text and calls.
#include "dialect/dialect.h"
#include "dialect/harmony.h"

namespace tandem::dialect {

Dialect gpt_oss() {
  return {.name = "gpt_oss",
          .signs = {.in_template = {{"<|channel|>", "<|message|>"}},
                    .in_vocabulary = {"<|channel|>", "<|message|>", "<|call|>"},
                    .parser_names = {"gpt_oss", "harmony"},
                    .order = 8},
          .syntax = std::make_shared<Harmony>(),
          .layout = {.call = "<|start|>assistant to=functions.$name<|channel|>commentary json"
                             "<|message|>$arguments<|call|>",
                     .call_too = "<|channel|>commentary to=functions.$name <|constrain|>json"
                                 "<|message|>$arguments",
                     .in_prompt = "<|start|>assistant",
                     .at_end = "<|call|>",
                     .thought = "<|start|>assistant<|channel|>analysis<|message|>$text<|end|>",
                     .prose = "<|start|>assistant<|channel|>final<|message|>$text<|end|>"}};
}

}  // namespace tandem::dialect
