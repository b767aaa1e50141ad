// What a scripted model says, and when: rules in a JSON file. docs/scripts.md has the format.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/request.h"
#include "dialect/written_answer.h"
#include "script/pattern.h"
#include "script/seen.h"

namespace tandem::script {

using dialect::Json;

/// How an answer is delivered.
struct Pace {
  size_t tokens = 1;                   // a step
  std::chrono::milliseconds first{0};  // before the first step
  std::chrono::milliseconds step{0};   // between steps
};

/// A regular expression and where it looks.
struct Search {
  Place in;
  Pattern pattern;
};

/// Which requests a rule is for: all that is said must hold.
struct When {
  std::optional<size_t> results = {};  // exactly so many tool results
  std::vector<std::string> tools = {};
  bool no_tools = false;
  std::vector<Search> searches = {};
};

/// A part of an answer, with ${…} in its strings.
struct Part {
  std::optional<dialect::Channel> channel = {};  // unset: a call
  std::string text = {};
  size_t times = 1;
  std::string tool = {};
  Json arguments = Json::object();
};

struct Rule {
  When when = {};
  std::vector<Part> say = {};
  Pace pace = {};
  std::optional<Error> refusal = {};  // in place of an answer
  std::optional<Error> failure = {};  // behind what it says
  bool hangs = false;                 // no end behind what it says, until cancelled
};

/// What a request gets.
struct Plan {
  std::vector<dialect::AnswerPart> parts = {};
  Pace pace = {};
  std::optional<Error> failure = {};
  bool hangs = false;
};

/// Immutable; thread-safe.
class Script {
 public:
  /// From a file's text. kInvalid names the place and what was expected there.
  static Result<Script> parse(const std::string& json);

  /// By the first rule that fits. Errors: the rule's refusal; kInvalid when no rule fits or a
  /// variable was not found.
  Result<Plan> plan(const chat::Request& request) const;

 private:
  std::vector<Search> find_;
  std::vector<Rule> rules_;
};

}  // namespace tandem::script
