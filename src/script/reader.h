// A script's JSON, read strictly: every key is known, every value of its kind.
#pragma once

#include <vector>

#include "script/script.h"

namespace tandem::script {

struct ScriptParts {
  std::vector<Search> find = {};
  std::vector<Rule> rules = {};
};

/// kInvalid names the place ("rules[2].say[0]"), what was expected and what came.
Result<ScriptParts> read_script(const Json& document);

}  // namespace tandem::script
