// DeepSeek V3, R1 and its distilled models: a section of calls, arguments in a fence.
#include "dialect/dialect.h"
#include "dialect/headed_json.h"

namespace tandem::dialect {

Dialect deepseek_v3() {
  return {.name = "deepseek_v3",
          .signs = {.in_template = {{"<｜tool▁calls▁begin｜>", "```json"}},
                    .parser_names = {"deepseek_v3"},
                    .order = 15},
          .syntax = std::make_shared<HeadedJson>(
              HeadedJsonMarkers{.starts = {"<｜tool▁calls▁begin｜>"},
                                .end = "<｜tool▁calls▁end｜>",
                                .call_begins = {"<｜tool▁call▁begin｜>"},
                                .before_name = {"function<｜tool▁sep｜>"},
                                .head_ends = {"```json", "<｜tool▁sep｜>"},
                                .after = {"```"},
                                .call_ends = {"<｜tool▁call▁end｜>"}}),
          .layout = {
              .before = "<｜tool▁calls▁begin｜>",
              .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```"
                      "<｜tool▁call▁end｜>",
              .between = "\n",
              .after = "<｜tool▁calls▁end｜>"}};
}

}  // namespace tandem::dialect
