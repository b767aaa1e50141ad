// One generation between a client and the service: submits, streams or gathers, cancels.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "chat/event.h"
#include "protocol/answer.h"
#include "protocol/api.h"
#include "protocol/handlers.h"
#include "protocol/wire_request.h"

namespace tandem::protocol {

/// Kept alive by the service's sink until every choice has had its last event. Events come from the
/// generator's thread, disconnects from an I/O thread.
class Call : public std::enable_shared_from_this<Call> {
 public:
  struct Parts {
    std::string id;
    std::string endpoint;
    std::string side = {};  // see RequestRecord
    WireRequest wire;
    std::unique_ptr<AnswerEncoder> encoder;
  };

  /// Answers the request through `reply`, now (refused) or as events come.
  static void start(Api& api, const net::Request& request, const ReplyPtr& reply, Parts parts);

  Call(Api& api, ReplyPtr reply, const Parts& parts, std::unique_ptr<AnswerEncoder> encoder);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  void accepted(uint32_t prompt_tokens);
  void receive(chat::Event event);
  void handle(const chat::Event& event);
  std::string encoded(const chat::Event& event);
  bool is_surplus(const chat::Event& event) const;
  void finish();
  void fail(const Error& error);
  void cancel_rest();
  void client_left();
  void beat();
  void wait_on();
  net::Headers with_id(net::Headers headers) const;

  Api& api_;
  const std::string id_;
  const bool stream_;
  const bool parallel_calls_;
  ReplyPtr reply_;
  const std::unique_ptr<AnswerEncoder> encoder_;

  std::mutex mutex_;
  std::vector<chat::Event> early_;  // that came before the stream was opened
  bool open_ = false;
  bool over_ = false;  // the reply has ended
  bool talking_ = false;
  TimePoint last_shown_;
  std::optional<chat::Progress> progress_;
  std::vector<Answer> answers_;
  std::vector<chat::Usage> usages_;
  size_t ended_ = 0;
  bool rest_is_useless_ = false;  // a choice failed while others go on
};

/// What keeps a client's prefixes and answers apart from those of others; empty where all share.
std::string salt_of(const Api& api, const net::Request& request);

/// Whose turn it is among those who ask: an API key's id, or else a peer.
std::string client_of(const net::Request& request);

/// Says whose it is, which decides what of earlier turns its prompt may have: before anything is
/// asked of the service about it.
void set_client(const Api& api, const net::Request& request, chat::Request& wanted);

int64_t unix_seconds();

/// prefix + 24 random hex digits.
std::string new_request_id(const std::string& prefix);

}  // namespace tandem::protocol
