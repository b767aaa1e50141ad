#include "script/player.h"

#include <algorithm>
#include <utility>

#include "chat/conversation.h"
#include "gen/common_tokens.h"

namespace tandem::script {
namespace {

constexpr size_t kTail = 64;  // tokens of a prompt that may hold an opened thought

bool begins_with(const std::vector<gen::TokenId>& tokens, const std::vector<gen::TokenId>& start) {
  return gen::common_tokens(tokens, start) == start.size();
}

std::vector<dialect::AnswerPart> without_thinking(std::vector<dialect::AnswerPart> parts) {
  std::erase_if(parts, [](const dialect::AnswerPart& part) {
    return part.channel == dialect::Channel::kThinking;
  });
  return parts;
}

}  // namespace

Player::Player(Script script,
               text::ModelText model_text,
               const dialect::Dialect& dialect,
               uint32_t max_context)
    : script_(std::move(script)),
      text_(std::move(model_text)),
      dialect_(dialect),
      fake_(
          {.vocab = static_cast<uint32_t>(text_.tokenizer->size()), .max_context = max_context},
          [this](const gen::Request& request) { return reply(request); },
          gen::Fake::Delivery::kOwnThread,
          gen::Fake::Memory::kForgets) {}

void Player::announce(const chat::Request& request, gen::RequestId id) {
  const auto* talk = std::get_if<chat::Conversation>(&request.input);
  Announced announced{.plan = script_.plan(request),
                      .continues = talk != nullptr && talk->continues_last_message};
  const std::lock_guard lock(mutex_);
  announced_.insert_or_assign(id, std::move(announced));
}

Status Player::submit(gen::Request request, gen::Sink sink) {
  if (draining_ && request.emitted.empty()) {
    const std::lock_guard lock(mutex_);
    announced_.erase(request.id);
    return Error{ErrorCode::kUnavailable, "the server is shutting down and takes no new requests"};
  }
  if (request.pooling)
    return Error{ErrorCode::kUnsupported, "a script has no embeddings: serve a model for them",
                 "input"};
  return fake_.submit(std::move(request), std::move(sink));
}

gen::FakeReply Player::reply(const gen::Request& request) {
  std::unique_lock lock(mutex_);
  auto entry = announced_.extract(request.id);
  lock.unlock();
  if (entry.empty())
    return {.refusal = Error{ErrorCode::kInternal, "a request came that nobody announced"}};
  const Announced& announced = entry.mapped();
  if (!announced.plan) return {.refusal = announced.plan.error()};
  auto tokens = tokens_of(announced, request);
  if (!tokens) return {.refusal = tokens.error()};
  const Plan& plan = *announced.plan;
  const uint32_t cached = remember(request, *tokens);
  return {.tokens = std::move(*tokens),
          .failure = plan.failure,
          .hangs = plan.hangs,
          .cached_tokens = cached,
          .tokens_per_event = plan.pace.tokens,
          .before_first = plan.pace.first,
          .before_next = plan.pace.step};
}

Result<std::vector<gen::TokenId>> Player::tokens_of(const Announced& announced,
                                                    const gen::Request& request) const {
  const dialect::ThinkingMarkers markers =
      text_.thinking ? dialect::ThinkingMarkers{text_.thinking->start, text_.thinking->end}
                     : dialect::ThinkingMarkers{};
  dialect::AnswerStart start;
  if (text_.thinking) start.thinking = markers;
  start.in_thinking = leaves_thinking(request, announced.continues);
  const std::vector<dialect::AnswerPart>& parts = announced.plan->parts;
  auto tokens = text_.tokenizer->encode(write_answer(dialect_, start, parts), false);
  if (!tokens) return tokens;
  if (!begins_with(*tokens, request.emitted)) {
    // Its thought was closed early: what was said so far, and what comes behind thinking.
    start.in_thinking = false;
    auto rest =
        text_.tokenizer->encode(write_answer(dialect_, start, without_thinking(parts)), false);
    if (!rest) return rest;
    *tokens = request.emitted;
    tokens->insert(tokens->end(), rest->begin(), rest->end());
  }
  const bool ends = !announced.plan->hangs && !announced.plan->failure;
  if (ends && !text_.eos.empty()) tokens->push_back(text_.eos.front());
  return tokens;
}

bool Player::leaves_thinking(const gen::Request& request, bool continues) const {
  if (!text_.thinking) return false;
  const size_t from =
      continues || request.prompt.size() < kTail ? 0 : request.prompt.size() - kTail;
  std::string tail;
  for (size_t i = from; i < request.prompt.size(); ++i)
    tail += text_.tokenizer->bytes(request.prompt[i]);
  return chat::ends_in_thinking(tail, *text_.thinking, continues);
}

/// How much of the prompt a cache of the last conversations would have.
uint32_t Player::remember(const gen::Request& request, const std::vector<gen::TokenId>& answer) {
  Remembered now{.salt = request.salt, .tokens = request.prompt};
  const size_t spoken = std::min<size_t>(answer.size(), request.max_tokens);
  now.tokens.insert(now.tokens.end(), answer.begin(),
                    answer.begin() + static_cast<ptrdiff_t>(spoken));
  const std::lock_guard lock(mutex_);
  size_t shared = 0;
  for (const Remembered& old : remembered_) {
    if (old.salt == request.salt)
      shared = std::max(shared, gen::common_tokens(request.prompt, old.tokens));
  }
  remembered_.push_front(std::move(now));
  if (remembered_.size() > kRemembered) remembered_.pop_back();
  return static_cast<uint32_t>(std::min(shared, request.prompt.size() - 1));
}

}  // namespace tandem::script
