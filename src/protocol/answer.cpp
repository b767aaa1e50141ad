#include "protocol/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/sse.h"
#include "protocol/errors.h"

namespace tandem::protocol {

void Answer::add(const chat::Event& event) {
  if (const auto* delta = std::get_if<chat::Delta>(&event.body)) {
    logprobs.insert(logprobs.end(), delta->logprobs.begin(), delta->logprobs.end());
    if (delta->text.empty()) return;
    const auto kind =
        delta->channel == chat::Channel::kText ? Block::Kind::kText : Block::Kind::kThinking;
    if (blocks.empty() || blocks.back().kind != kind) {
      blocks.push_back({.kind = kind, .text = {}, .id = {}, .name = {}});
    }
    blocks.back().text += delta->text;
  } else if (const auto* call = std::get_if<chat::CallStarted>(&event.body)) {
    blocks.push_back({.kind = Block::Kind::kCall, .text = {}, .id = call->id, .name = call->name});
  } else if (const auto* piece = std::get_if<chat::CallArguments>(&event.body)) {
    if (!blocks.empty() && blocks.back().kind == Block::Kind::kCall) {
      blocks.back().text += piece->json;
    }
  } else if (const auto* ended = std::get_if<chat::CallEnded>(&event.body)) {
    if (!blocks.empty()) blocks.back().is_complete = ended->is_complete;
  } else if (const auto* last = std::get_if<chat::End>(&event.body)) {
    end = *last;
  }
}

std::string Answer::joined(Block::Kind kind) const {
  std::string out;
  for (const Block& block : blocks) {
    if (block.kind == kind) out += block.text;
  }
  return out;
}

bool Answer::has_calls() const {
  return std::ranges::any_of(blocks,
                             [](const Block& block) { return block.kind == Block::Kind::kCall; });
}

std::string AnswerEncoder::accepted(uint32_t) { return {}; }

std::string AnswerEncoder::call_started(uint32_t, const chat::CallStarted&) { return {}; }
std::string AnswerEncoder::call_arguments(uint32_t, const chat::CallArguments&) { return {}; }
std::string AnswerEncoder::call_ended(uint32_t, const chat::CallEnded&) { return {}; }

std::string AnswerEncoder::failed(const Error& error) {
  return net::encode_sse(dump(error_body(error)));
}

std::string AnswerEncoder::waiting(const chat::Progress* progress, std::chrono::milliseconds) {
  if (!progress) return net::encode_sse_comment("keepalive");
  return net::encode_sse_comment(fmt::format("keepalive {}/{}", progress->done, progress->total));
}

net::Headers AnswerEncoder::stream_headers() const { return net::sse_headers(); }

net::Response AnswerEncoder::refusal(const Error& error) { return error_response(error); }

const char* name(chat::FinishReason reason) {
  switch (reason) {
    case chat::FinishReason::kStop:
      return "stop";
    case chat::FinishReason::kLength:
      return "length";
    case chat::FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "unknown";
}

Json finish_detail(const chat::End& end) {
  Json out = Json::array();
  for (const chat::Guard guard : end.guards) out.push_back(name(guard));
  if (end.cut_in_call) out.push_back("cut_off_call");
  return out.empty() ? Json(nullptr) : out;
}

Json encode_warnings(const std::vector<chat::Warning>& warnings) {
  Json out = Json::array();
  for (const chat::Warning& warning : warnings) {
    out.push_back(Json{{"code", warning.code}, {"message", warning.message}});
  }
  return out;
}

chat::Usage total_usage(const std::vector<chat::Usage>& choices) {
  chat::Usage total = choices.empty() ? chat::Usage{} : choices.front();
  for (size_t i = 1; i < choices.size(); ++i) {
    total.cached_tokens = std::min(total.cached_tokens, choices[i].cached_tokens);
    total.completion_tokens += choices[i].completion_tokens;
    total.reasoning_tokens += choices[i].reasoning_tokens;
  }
  return total;
}

}  // namespace tandem::protocol
