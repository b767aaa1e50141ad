// A whole answer as a model of a dialect writes it: the way back from thinking, text and calls.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dialect/dialect.h"
#include "dialect/parser.h"

namespace tandem::dialect {

/// A piece of an answer: thinking, text, or (neither) calls that are made together.
struct AnswerPart {
  std::optional<Channel> channel = {};
  std::string text = {};
  std::vector<Call> calls = {};
};

/// How the prompt leaves the answer, and how its model marks thinking.
struct AnswerStart {
  std::optional<ThinkingMarkers> thinking = {};  // unset: thinking is left out
  bool in_thinking = false;                      // the prompt has opened a thought
};

/// What the model writes behind its prompt, so that the dialect's parser gives these parts again.
/// Thinking is left out where the model has no way to mark it.
std::string write_answer(const Dialect& dialect,
                         const AnswerStart& start,
                         std::span<const AnswerPart> parts);

}  // namespace tandem::dialect
