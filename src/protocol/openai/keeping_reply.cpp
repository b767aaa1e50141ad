#include "protocol/openai/keeping_reply.h"

#include <string_view>
#include <utility>

#include "net/sse.h"
#include "protocol/answer.h"
#include "protocol/openai/responses_events.h"

namespace tandem::protocol::openai {
namespace {

/// A response that says that it is not kept.
void take_back_store(Json& response, const chat::Warning& warning) {
  response["store"] = false;
  response["warnings"].push_back(encode_warnings({warning}).front());
}

}  // namespace

chat::Warning KeepingReply::warning_of(const Error& why) const {
  chat::Warning warning{.code = "not_stored",
                        .message = "the response could not be kept: " + why.message};
  metrics_.warned({warning});
  return warning;
}

void KeepingReply::send(net::Response response) {
  if (response.status != 200) return reply_->send(std::move(response));
  std::string body = response.body;
  kept_.put_answer_later(
      owner_, std::move(record_), std::move(body),
      [self = shared_from_this(), response = std::move(response)](const Status& kept) mutable {
        if (!kept) {
          Json answer = Json::parse(response.body);
          take_back_store(answer, self->warning_of(kept.error()));
          response.body = dump(answer);
        }
        self->reply_->send(std::move(response));
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
  kept_.put_answer_later(owner_, std::move(record_), last_,
                         [self = shared_from_this()](const Status& kept) {
                           std::string last = std::move(self->last_);
                           if (!kept) {
                             const std::string name(event_name(last));
                             Json data = event_data(last);
                             take_back_store(data["response"], self->warning_of(kept.error()));
                             last = net::encode_sse(dump(data), name);
                           }
                           self->reply_->write(std::move(last));
                           self->reply_->finish();
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
