// Harmony: an answer of messages, each with a channel, and with a recipient when it is a call.
#pragma once

#include <string>
#include <vector>

#include "dialect/syntax.h"

namespace tandem::dialect {

/// Analysis is thinking; final, and commentary without a recipient, is text; a message to
/// functions.NAME is a call. What is no message is text.
class Harmony final : public Syntax {
 public:
  std::vector<std::string> starts() const override { return {}; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope) const override { co_return Found::kProse; }
  bool owns_answer() const override { return true; }
  Task<bool> read_all(Scope scope) const override;
  /// The next message begins, whose channel the model chooses: its answer or a call.
  std::string thinking_close() const override { return "<|end|><|start|>assistant"; }

 private:
  struct Head;

  Task<bool> read_head(Scope scope, Head& head) const;
  Task<bool> read_body(Scope scope, Channel channel) const;
  Task<bool> read_call(Scope scope, std::string name) const;
  Task<bool> read_message(Scope scope, bool only_calls) const;
};

}  // namespace tandem::dialect
