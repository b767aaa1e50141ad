#include "net/exchange.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

namespace tandem::net {
namespace {

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

/// A Reply that forwards, and ends the exchange when dropped.
class Handle final : public Reply {
 public:
  explicit Handle(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override { exchange_->send(fault(500, "no_reply", "the request was not answered")); }

  void send(Response response) override { exchange_->send(std::move(response)); }
  void start(int status, Headers headers) override { exchange_->start(status, std::move(headers)); }
  bool write(std::string piece) override { return exchange_->write(std::move(piece)); }
  void finish() override { exchange_->finish(); }
  void on_closed(std::function<void()> callback) override {
    exchange_->on_closed(std::move(callback));
  }
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override {
    exchange_->keep_alive(period, std::move(text));
  }

 private:
  const std::shared_ptr<Exchange> exchange_;  // shared with the connection
};

}  // namespace

std::shared_ptr<Reply> make_handle(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<Handle>(std::move(exchange));
}

Exchange::Exchange(Shape shape, std::function<void()> wake)
    : shape_(std::move(shape)), wake_(std::move(wake)) {}

void Exchange::put_head(int status, const Headers& headers, std::optional<size_t> length) {
  started_ = true;
  queue_ += fmt::format("HTTP/1.1 {} {}\r\n", status, reason(status));
  for (const Headers* list : {&headers, &shape_.extra}) {
    for (const Header& header : *list) {
      queue_ += fmt::format("{}: {}\r\n", header.name, header.value);
    }
  }
  chunked_ = !length && shape_.http_1_1;
  if (length && status != 204) queue_ += fmt::format("Content-Length: {}\r\n", *length);
  if (chunked_) queue_ += "Transfer-Encoding: chunked\r\n";
  keep_ = shape_.keep_alive && (length || chunked_);
  queue_ += keep_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

bool Exchange::put(std::string_view piece) {
  if (piece.empty()) return true;
  if (queue_.size() + piece.size() > shape_.queue_limit_bytes) {
    cut_ = true;
    ended_ = true;
    queue_.clear();
    return false;
  }
  if (chunked_) {
    queue_ += fmt::format("{:x}\r\n", piece.size());
    queue_.append(piece).append("\r\n");
  } else {
    queue_ += piece;
  }
  return true;
}

void Exchange::send(Response response) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    if (started_) {
      cut_ = true;  // a stream that its handler gave up: cut it, so that clients can tell
    } else {
      put_head(response.status, response.headers, response.body.size());
      if (!shape_.head) queue_ += response.body;
    }
  }
  release();
  wake_();
}

void Exchange::start(int status, Headers headers) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || started_) return;
    put_head(status, headers, std::nullopt);
  }
  wake_();
}

bool Exchange::write(std::string piece) {
  bool ok = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || !started_ || closed_) return false;
    ok = put(piece);
  }
  wake_();
  return ok;
}

void Exchange::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || !started_) return;
    ended_ = true;
    if (chunked_) queue_ += "0\r\n\r\n";
  }
  release();
  wake_();
}

/// Lets go of what the callbacks hold, outside the lock: they may hold whoever holds this.
void Exchange::release() {
  std::vector<std::function<void()>> callbacks;
  std::function<std::string()> text;
  const std::lock_guard lock(mutex_);
  if (cut_) return;
  callbacks.swap(callbacks_);
  text.swap(beat_text_);
}

void Exchange::on_closed(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ && !cut_) return;
    if (!closed_ && !cut_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void Exchange::keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) {
  {
    const std::lock_guard lock(mutex_);
    period_ = period;
    beat_text_ = std::move(text);
  }
  wake_();
}

Exchange::Batch Exchange::take() {
  const std::lock_guard lock(mutex_);
  return {.bytes = std::exchange(queue_, {}), .is_last = ended_, .cut = cut_};
}

std::optional<std::chrono::milliseconds> Exchange::beat_period() const {
  const std::lock_guard lock(mutex_);
  if (!beat_text_ || !started_ || ended_ || period_.count() <= 0) return std::nullopt;
  return period_;
}

void Exchange::beat() {
  std::function<std::string()> text;
  {
    const std::lock_guard lock(mutex_);
    text = beat_text_;
  }
  const std::string piece = text ? text() : std::string{};
  const std::lock_guard lock(mutex_);
  if (started_ && !ended_) put(piece);
}

void Exchange::close() {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    callbacks.swap(callbacks_);
  }
  for (const auto& callback : callbacks) callback();
}

void Exchange::abandon() {
  close();
  std::function<std::string()> text;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  queue_.clear();
  text.swap(beat_text_);
}

bool Exchange::keeps_alive() const {
  const std::lock_guard lock(mutex_);
  return keep_ && !cut_;
}

bool Exchange::is_cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

}  // namespace tandem::net
