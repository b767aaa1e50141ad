#include "protocol/openai/keeping_reply.h"

#include <optional>
#include <string_view>
#include <utility>

#include "protocol/openai/responses_events.h"

namespace tandem::protocol::openai {

void KeepingReply::send(net::Response response) {
  if (response.status == 200) kept_.put_answer_later(owner_, std::move(record_), response.body);
  reply_->send(std::move(response));
}

bool KeepingReply::write(std::string piece) {
  for (const std::string_view event : events_in(piece)) {
    if (!is_end(event_name(event))) continue;
    kept_.put_answer_later(owner_, std::move(record_), std::string(event));
    break;
  }
  return reply_->write(std::move(piece));
}

void KeepingReply::start(int status, net::Headers headers) {
  reply_->start(status, std::move(headers));
}

void KeepingReply::finish() { reply_->finish(); }

void KeepingReply::on_closed(std::function<void()> callback) {
  reply_->on_closed(std::move(callback));
}

void KeepingReply::keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) {
  reply_->keep_alive(period, std::move(text));
}

}  // namespace tandem::protocol::openai
