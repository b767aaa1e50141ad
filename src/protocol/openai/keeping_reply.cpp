#include "protocol/openai/keeping_reply.h"

#include <string_view>
#include <utility>

#include "net/sse.h"
#include "protocol/openai/responses_events.h"

namespace tandem::protocol::openai {

/// On the queue's thread; at once, and without a try, when too much waits there.
void KeepingReply::keep_then(size_t bytes, const std::function<Status(Status possible)>& work) {
  const bool left = queue_.post(bytes_ + bytes, [work] { return work({}); });
  if (!left) (void)work(Error{ErrorCode::kBusy, "too much waits to be written"});
}

Status KeepingReply::keep(Json& response, Status possible) {
  const std::vector<chat::Warning> warnings = keep_(response, std::move(possible));
  metrics_.warned(warnings);
  return warnings.empty() ? Status() : Error{ErrorCode::kIo, warnings.front().message};
}

void KeepingReply::send(net::Response response) {
  if (response.status != 200) return reply_->send(std::move(response));
  const size_t bytes = response.body.size();
  keep_then(bytes, [self = shared_from_this(), response = std::move(response)](Status possible) {
    Json answer = Json::parse(response.body, nullptr, false);
    const Status kept = self->keep(answer, std::move(possible));
    net::Response told = response;
    if (!kept) told.body = dump(answer);
    self->reply_->send(std::move(told));
    return kept;
  });
}

bool KeepingReply::write(std::string piece) {
  for (const std::string_view event : events_in(piece)) {
    if (!is_end(event_name(event))) continue;
    last_ = event;
    piece.resize(static_cast<size_t>(event.data() - piece.data()));
    break;
  }
  return piece.empty() || reply_->write(std::move(piece));
}

void KeepingReply::finish() {
  if (last_.empty()) return reply_->finish();
  keep_then(last_.size(), [self = shared_from_this()](Status possible) {
    Json data = event_data(self->last_);
    const Status kept = self->keep(data["response"], std::move(possible));
    const std::string name(event_name(self->last_));
    self->reply_->write(kept ? self->last_ : net::encode_sse(dump(data), name));
    self->reply_->finish();
    return kept;
  });
}

void KeepingReply::start(int status, net::Headers headers) {
  reply_->start(status, std::move(headers));
}

void KeepingReply::on_closed(std::function<void()> callback) {
  reply_->on_closed(std::move(callback));
}

void KeepingReply::keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) {
  reply_->keep_alive(period, std::move(text));
}

}  // namespace tandem::protocol::openai
