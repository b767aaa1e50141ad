#include "dialect/output.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tandem::dialect {

void Output::push(Body body, size_t end) {
  const size_t begin = covered_;
  covered_ = std::max(covered_, end);
  events_.push_back({.body = std::move(body), .begin = begin, .end = covered_});
}

void Output::text(Channel channel, std::string_view text, size_t end) {
  if (channel != channel_) flush_text();
  channel_ = channel;
  text_ += text;
  text_end_ = end;
}

void Output::flush_text() {
  if (text_.empty()) return;
  push(Text{.channel = channel_, .text = std::exchange(text_, {})}, text_end_);
}

void Output::flush_arguments() {
  if (arguments_.empty()) return;
  push(CallArguments{.call = calls_ - 1, .json = std::exchange(arguments_, {})}, in_.position());
}

void Output::markup() {
  flush_text();
  push(Markup{}, in_.position());
}

void Output::misfit() {
  flush_text();
  ended_well_ = false;
  push(Misfit{}, covered_);
}

void Output::start_call(std::string name, std::string id) {
  TANDEM_CHECK(!is_open_, "a call begins inside another");
  flush_text();
  in_.commit();
  is_open_ = true;
  push(CallStarted{.call = calls_++, .id = std::move(id), .name = std::move(name)}, in_.position());
}

void Output::end_call(bool complete) {
  flush_arguments();
  is_open_ = false;
  ended_well_ = complete;
  push(CallEnded{.call = calls_ - 1, .complete = complete}, in_.position());
  if (complete && only_first_call_) in_.cut();
}

std::vector<Event> Output::take() {
  if (is_open_) {
    flush_arguments();
  } else {
    flush_text();
  }
  return std::exchange(events_, {});
}

}  // namespace tandem::dialect
