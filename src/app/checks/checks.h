// What a client relies on, each as a check of a running server.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/checks/target.h"

namespace tandem::app::checks {

struct Check {
  std::string name;
  std::function<Verdict(Target&)> run;
};

/// All, in the order in which they make sense: those of models() first.
std::vector<Check> all();

Verdict health(Target& target);
Verdict models(Target& target);
Verdict unknown_model(Target& target);
Verdict bad_field(Target& target);
Verdict too_long(Target& target);
Verdict cancel(Target& target);

Verdict chat(Target& target);
Verdict chat_stream(Target& target);
Verdict tools(Target& target);
Verdict thinking(Target& target);
Verdict structured(Target& target);

Verdict responses(Target& target);
Verdict responses_stream(Target& target);

Verdict messages(Target& target);
Verdict messages_stream(Target& target);
Verdict count_tokens(Target& target);

}  // namespace tandem::app::checks
