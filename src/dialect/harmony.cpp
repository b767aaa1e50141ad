#include "dialect/harmony.h"

#include <utility>

#include "dialect/json_text.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

constexpr std::string_view kFunctions = "functions.";
constexpr size_t kLongestWords = 512;

const std::vector<std::string> kHeadTags = {"<|start|>", "<|channel|>", "<|constrain|>",
                                            "<|message|>"};
constexpr size_t kChannel = 1;
constexpr size_t kMessage = 3;
const std::vector<std::string> kNextHead = {"<|start|>", "<|channel|>"};
const std::vector<std::string> kEnds = {"<|end|>", "<|call|>", "<|return|>"};
constexpr size_t kCallEnd = 1;

/// What follows "to=", up to white space.
std::string recipient_of(std::string_view words) {
  const size_t at = words.find("to=");
  if (at == std::string_view::npos) return {};
  words.remove_prefix(at + 3);
  return std::string(words.substr(0, words.find_first_of(" \t\n")));
}

/// Up to the next tag.
Task<std::string> read_words(Input& in) {
  std::string words;
  while (words.size() < kLongestWords) {
    const int c = co_await in.peek();
    if (c == Input::kEnd || c == '<') break;
    words += static_cast<char>(c);
    in.skip();
  }
  co_return words;
}

}  // namespace

struct Harmony::Head {
  std::string channel = {};
  std::string recipient = {};
};

std::vector<std::string> Harmony::literals() const {
  std::vector<std::string> all = kHeadTags;
  all.insert(all.end(), kEnds.begin(), kEnds.end());
  return all;
}

/// The prompt ends inside a head, so that an answer begins with one. Text without a head is text.
Task<bool> Harmony::read_all(Scope scope) const {
  co_await read_message(scope, false);
  bool only_calls = false;
  while (true) {
    const int c = co_await scope.in.peek();
    if (c == Input::kEnd) co_return true;
    const size_t ended = co_await match_any(scope.in, kEnds);
    if (ended < kEnds.size()) {
      scope.out.markup();
      only_calls = ended == kCallEnd && scope.ends_after_calls && scope.out.ended_well();
      continue;
    }
    const bool was_message = co_await read_message(scope, only_calls);
    if (was_message) continue;
    if (only_calls) {
      scope.in.cut();
      co_return true;
    }
    scope.in.skip();
    const char byte = static_cast<char>(c);
    scope.out.text(Channel::kText, std::string_view(&byte, 1), scope.in.position());
  }
}

/// A head and its body. False, with nothing read, when there is no head here, or, with
/// `only_calls`, not that of a call.
Task<bool> Harmony::read_message(Scope scope, bool only_calls) const {
  Head head;
  bool is_call = false;
  {
    const Input::Mark start(scope.in);
    const bool has_head = co_await read_head(scope, head);
    if (!has_head) co_return false;
    is_call = head.recipient.starts_with(kFunctions) && !scope.tools.empty();
    if (only_calls && !is_call) {
      start.go_back();
      co_return false;
    }
  }
  scope.out.markup();
  if (is_call) {
    co_return co_await read_call(scope, head.recipient.substr(kFunctions.size()));
  }
  const bool is_thinking = head.channel == "analysis" && head.recipient.empty();
  scope.out.enter(is_thinking ? Channel::kThinking : Channel::kText);
  const bool is_read = co_await read_body(scope, is_thinking ? Channel::kThinking : Channel::kText);
  scope.out.enter(Channel::kText);  // a head is no thinking
  co_return is_read;
}

/// Through <|message|>. A head that the answer's end cuts off is read to there.
Task<bool> Harmony::read_head(Scope scope, Head& head) const {
  const Input::Mark start(scope.in);
  co_await skip_space(scope.in);
  const bool is_addressed = co_await match(scope.in, "to=");
  if (is_addressed) {
    const std::string words = co_await read_words(scope.in);
    head.recipient = recipient_of("to=" + words);
  }
  bool has_tag = false;
  while (true) {
    const size_t tag = co_await match_any(scope.in, kHeadTags);
    if (tag == kMessage) co_return true;
    if (tag == kHeadTags.size()) break;
    has_tag = true;
    const std::string words = co_await read_words(scope.in);
    if (tag == kChannel) {
      const std::string_view name = trimmed(words);
      head.channel = std::string(name.substr(0, name.find_first_of(" \t\n")));
    }
    if (head.recipient.empty()) head.recipient = recipient_of(words);
  }
  const bool begins_call = is_addressed && scope.in.was_cut_off();
  if ((has_tag || begins_call) && scope.in.saw_end()) {
    while (scope.in.has_more()) scope.in.skip();
    const bool is_call = is_addressed || head.recipient.starts_with(kFunctions);
    if (scope.in.was_cut_off() && is_call) scope.out.leave_out_call();
    head.recipient.clear();
    co_return true;
  }
  start.go_back();
  co_return false;
}

Task<bool> Harmony::read_body(Scope scope, Channel channel) const {
  while (true) {
    const int c = co_await scope.in.peek();
    if (c == Input::kEnd) co_return true;
    if (c == '<') {
      const bool is_over = co_await looks_at(scope.in, kEnds);
      const bool is_next = co_await looks_at(scope.in, kNextHead);
      if (is_over || is_next) co_return true;
    }
    scope.in.skip();
    const char byte = static_cast<char>(c);
    scope.out.text(channel, std::string_view(&byte, 1), scope.in.position());
  }
}

/// Arguments that are no JSON object are text.
Task<bool> Harmony::read_call(Scope scope, std::string name) const {
  co_await skip_space(scope.in);
  const bool has_arguments = co_await looks_like_object(scope.in, kJsonStyle);
  if (!has_arguments) {
    if (scope.in.saw_end() && scope.in.was_cut_off()) {
      while (scope.in.has_more()) scope.in.skip();
      scope.out.markup();
      scope.out.leave_out_call();
      co_return true;
    }
    if (!scope.in.saw_end()) scope.out.misfit();
    co_return co_await read_body(scope, Channel::kText);
  }
  scope.out.start_call(std::move(name), {});
  ValueReader reader(scope.in, scope.out.arguments(), kJsonStyle);
  const bool ok = co_await reader.value();
  scope.out.end_call(ok);
  if (!ok && !scope.in.saw_end()) scope.out.misfit();
  if (ok) co_await skip_space(scope.in);
  co_return co_await read_body(scope, Channel::kText);
}

}  // namespace tandem::dialect
