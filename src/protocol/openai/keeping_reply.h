// A client's reply whose response is kept as well.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/handlers.h"
#include "protocol/metrics.h"
#include "store/write_queue.h"

namespace tandem::protocol::openai {

/// Writes what is to outlive a response, and says in it what could not be: these warnings are in it
/// already. `possible`: it cannot be tried, for this reason.
using Keep = std::function<std::vector<chat::Warning>(Json& response, Status possible)>;

/// Passes everything on but the end, which the client has once its response is written: so that it
/// can go on with it at once, and so that an answer that could not be kept says so. Nobody waits
/// for that but the client. What is refused is not kept.
class KeepingReply final : public net::Reply, public std::enable_shared_from_this<KeepingReply> {
 public:
  /// `keep` runs on the queue's thread, and holds `bytes`.
  KeepingReply(ReplyPtr reply, store::WriteQueue& queue, Metrics& metrics, size_t bytes, Keep keep)
      : reply_(std::move(reply)),
        queue_(queue),
        metrics_(metrics),
        bytes_(bytes),
        keep_(std::move(keep)) {}

  void send(net::Response response) override;
  void start(int status, net::Headers headers) override;
  bool write(std::string piece) override;
  void finish() override;
  void on_closed(std::function<void()> callback) override;
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override;

 private:
  void keep_then(size_t bytes, const std::function<Status(Status possible)>& work);
  Status keep(Json& response, Status possible);

  const ReplyPtr reply_;
  store::WriteQueue& queue_;
  Metrics& metrics_;
  const size_t bytes_;
  const Keep keep_;
  std::string last_;  // the event that ends the stream
};

}  // namespace tandem::protocol::openai
