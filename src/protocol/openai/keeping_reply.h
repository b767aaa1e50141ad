// A client's reply whose response is kept as well.
#pragma once

#include <string>
#include <utility>

#include "protocol/handlers.h"
#include "protocol/openai/kept_responses.h"

namespace tandem::protocol::openai {

/// Passes everything on, and leaves the record to be written before the client has its end, so that
/// it can go on with the response at once. What is refused is not kept. `record`: without a
/// response.
class KeepingReply final : public net::Reply {
 public:
  KeepingReply(ReplyPtr reply, const KeptResponses& kept, std::string owner, KeptResponse record)
      : reply_(std::move(reply)),
        kept_(kept),
        owner_(std::move(owner)),
        record_(std::move(record)) {}

  void send(net::Response response) override;
  void start(int status, net::Headers headers) override;
  bool write(std::string piece) override;
  void finish() override;
  void on_closed(std::function<void()> callback) override;
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override;

 private:
  const ReplyPtr reply_;
  const KeptResponses& kept_;
  const std::string owner_;
  KeptResponse record_;  // until it is left to be written
};

}  // namespace tandem::protocol::openai
