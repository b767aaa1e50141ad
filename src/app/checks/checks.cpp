#include "app/checks/checks.h"

namespace tandem::app::checks {

std::vector<Check> all() {
  return {{"health", health},
          {"models", models},
          {"unknown model", unknown_model},
          {"bad field", bad_field},
          {"chat", chat},
          {"chat stream", chat_stream},
          {"tools", tools},
          {"thinking", thinking},
          {"structured", structured},
          {"responses", responses},
          {"responses stream", responses_stream},
          {"messages", messages},
          {"messages stream", messages_stream},
          {"count tokens", count_tokens},
          {"too long", too_long},
          {"cancel", cancel}};
}

}  // namespace tandem::app::checks
