// A client's reply whose response is kept as well.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "protocol/handlers.h"
#include "protocol/metrics.h"
#include "protocol/openai/kept_responses.h"

namespace tandem::protocol::openai {

/// Passes everything on but the end, which the client has once the record is written: so that it
/// can go on with the response at once, and so that an answer that could not be kept says so
/// (`store` false, a warning). Nobody waits for that but the client. What is refused is not kept.
/// `record`: without a response.
class KeepingReply final : public net::Reply, public std::enable_shared_from_this<KeepingReply> {
 public:
  KeepingReply(ReplyPtr reply,
               const KeptResponses& kept,
               Metrics& metrics,
               std::string owner,
               KeptResponse record)
      : reply_(std::move(reply)),
        kept_(kept),
        metrics_(metrics),
        owner_(std::move(owner)),
        record_(std::move(record)) {}

  void send(net::Response response) override;
  void start(int status, net::Headers headers) override;
  bool write(std::string piece) override;
  void finish() override;
  void on_closed(std::function<void()> callback) override;
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override;

 private:
  chat::Warning warning_of(const Error& why) const;

  const ReplyPtr reply_;
  const KeptResponses& kept_;
  Metrics& metrics_;
  const std::string owner_;
  KeptResponse record_;  // until it is left to be written
  std::string last_;     // the event that ends the stream
};

}  // namespace tandem::protocol::openai
