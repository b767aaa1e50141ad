#include "net/link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "net/link_impl.h"
#include "net/link_socket.h"
#include "net/link_tls.h"

namespace tandem::net {
namespace {

using Progress = TlsSession::Progress;

constexpr size_t kPrefixBytes = 4;
constexpr size_t kLinkReadBytes = size_t{64} << 10;

/// Splits the byte stream into frames.
class FrameSplitter {
 public:
  explicit FrameSplitter(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  /// Room for the next read.
  std::span<std::byte> room() {
    if (buffer_.size() < filled_ + kLinkReadBytes) buffer_.resize(filled_ + kLinkReadBytes);
    return std::span(buffer_).subspan(filled_);
  }

  /// `bytes` of room() were filled: hands out every whole frame.
  template <class OnFrame>
  Status filled(size_t bytes, const OnFrame& on_frame) {
    filled_ += bytes;
    size_t at = 0;
    while (filled_ - at >= kPrefixBytes) {
      uint32_t size = 0;
      std::memcpy(&size, buffer_.data() + at, sizeof size);
      if (size > max_frame_bytes_) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("a frame of {} bytes, at most {}", size, max_frame_bytes_)};
      }
      if (filled_ - at - kPrefixBytes < size) break;
      on_frame(std::span<const std::byte>(buffer_.data() + at + kPrefixBytes, size));
      at += kPrefixBytes + size;
    }
    if (at > 0) {
      std::memmove(buffer_.data(), buffer_.data() + at, filled_ - at);
      filled_ -= at;
      if (filled_ == 0 && buffer_.size() > size_t{1} << 20) buffer_ = {};
    }
    return {};
  }

 private:
  size_t max_frame_bytes_;
  std::vector<std::byte> buffer_;
  size_t filled_ = 0;
};

/// Bytes that wait to be written.
class Outbox {
 public:
  void push(std::span<const std::byte> frame) {
    const auto size = static_cast<uint32_t>(frame.size());
    const auto* prefix = reinterpret_cast<const std::byte*>(&size);
    bytes_.insert(bytes_.end(), prefix, prefix + kPrefixBytes);
    bytes_.insert(bytes_.end(), frame.begin(), frame.end());
  }
  std::span<const std::byte> waiting() const { return std::span(bytes_).subspan(written_); }
  size_t size() const { return bytes_.size() - written_; }
  bool empty() const { return size() == 0; }
  void pop(size_t bytes) {
    written_ += bytes;
    if (empty()) {
      written_ = 0;
      if (bytes_.capacity() > size_t{1} << 20) {
        bytes_ = {};
      } else {
        bytes_.clear();
      }
    } else if (written_ > bytes_.size() / 2 && written_ > size_t{1} << 20) {
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(written_));
      written_ = 0;
    }
  }

 private:
  std::vector<std::byte> bytes_;
  size_t written_ = 0;
};

class TlsLink final : public Link {
 public:
  TlsLink(std::unique_ptr<TlsSession> session, const LinkOptions& options)
      : peer_(peer_address(session->fd())),
        max_frame_bytes_(options.max_frame_bytes),
        max_queue_bytes_(options.max_queue_bytes),
        linger_(options.linger),
        splitter_(options.max_frame_bytes),
        session_(std::move(session)) {}

  ~TlsLink() override {
    close();
    if (thread_.joinable()) thread_.join();
  }

  void start(LinkHandlers handlers) override {
    handlers_ = std::move(handlers);
    {
      const std::lock_guard lock(mutex_);
      TANDEM_CHECK(!started_, "a link is started once");
      started_ = true;
    }
    thread_ = std::thread([this] { run(); });
  }

  Status send(std::span<const std::byte> frame) override {
    if (frame.size() > max_frame_bytes_) {
      return Error{ErrorCode::kTooLarge,
                   fmt::format("a frame of {} bytes, at most {}", frame.size(), max_frame_bytes_)};
    }
    const std::lock_guard lock(mutex_);
    if (closed_ || closing_ || send_failed_) return Error{ErrorCode::kPeerLost, why_closed()};
    if (outbox_.size() >= max_queue_bytes_) {
      return Error{ErrorCode::kBusy,
                   fmt::format("{} bytes wait for {} already", outbox_.size(), peer_)};
    }
    outbox_.push(frame);
    if (write_blocked_) return {};
    flush();
    if (write_blocked_) wake_.wake();  // the link's thread takes over what is left
    return {};
  }

  void close() override {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = SteadyClock().now() + (started_ ? linger_ : std::chrono::milliseconds(0));
    if (started_) {
      wake_.wake();
    } else {
      end_if_closing();
    }
  }

  const std::string& peer() const override { return peer_; }

 private:
  // With mutex_ held.
  void flush() {
    write_blocked_ = false;
    while (!outbox_.empty()) {
      const auto moved = session_->write(outbox_.waiting());
      if (moved.progress == Progress::kDone) {
        outbox_.pop(moved.bytes);
      } else if (moved.progress == Progress::kWantsWrite ||
                 moved.progress == Progress::kWantsRead) {
        write_blocked_ = true;
        return;
      } else {
        // What the peer said before it went is still to be read; reading finds the end.
        send_failed_ = true;
        outbox_ = {};
      }
    }
  }

  void fail(Progress progress) {
    if (closed_) return;
    const bool broken = progress == Progress::kFailed;
    closed_ = Error{broken ? ErrorCode::kCorrupt : ErrorCode::kPeerLost,
                    fmt::format("link to {}: {}", peer_, session_->problem())};
  }

  std::string why_closed() const {
    return closed_ ? closed_->message : fmt::format("link to {} is closed", peer_);
  }

  /// Ends a link that close() was called on, once everything is sent or the time is over.
  void end_if_closing() {
    if (closed_ || !closing_) return;
    if (!outbox_.empty() && SteadyClock().now() < *closing_) return;
    session_->shutdown();
    session_.reset();
    closed_ = Error{ErrorCode::kCancelled, fmt::format("link to {} was closed here", peer_)};
  }

  // The link's thread.
  void run() {
    readable_ = true;  // the handshake may have read ahead
    while (read() && wait()) {
    }
    std::optional<Error> why;
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) closed_ = Error{ErrorCode::kInternal, "the link's thread ended"};
      why = closed_;
      session_.reset();  // the peer sees the end at once, whoever still holds this object
    }
    if (handlers_.on_closed) handlers_.on_closed(*std::move(why));
  }

  /// Sleeps until there is something to read, room to write what waits, or a call of close().
  bool wait() {
    std::array<pollfd, 2> fds{};
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      end_if_closing();
      if (closed_) return false;
      const short events = static_cast<short>(POLLIN | (write_blocked_ ? POLLOUT : 0));
      fds = {pollfd{session_->fd(), events, 0}, pollfd{wake_.fd(), POLLIN, 0}};
      if (closing_) timeout = poll_timeout(*closing_);
    }
    ::poll(fds.data(), fds.size(), timeout);
    if ((fds[1].revents & POLLIN) != 0) wake_.clear();
    if ((fds[0].revents & POLLOUT) != 0) {
      const std::lock_guard lock(mutex_);
      flush();
    }
    readable_ = (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    return true;
  }

  /// Reads and delivers all there is; false at the end.
  bool read() {
    while (readable_) {
      TlsSession::Moved moved;
      {
        const auto room = splitter_.room();
        const std::lock_guard lock(mutex_);
        if (closed_) return false;
        moved = session_->read(room);
        if (moved.progress == Progress::kWantsRead || moved.progress == Progress::kWantsWrite) {
          return true;
        }
        if (moved.progress != Progress::kDone) {
          fail(moved.progress);
          return false;
        }
        if (closing_) continue;  // whoever closed does not want to hear more
      }
      const Status split = splitter_.filled(
          moved.bytes, [this](std::span<const std::byte> frame) { deliver(frame); });
      if (!split) {
        const std::lock_guard lock(mutex_);
        if (!closed_) closed_ = split.error();
        return false;
      }
    }
    return true;
  }

  void deliver(std::span<const std::byte> frame) {
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || closed_) return;
    }
    if (handlers_.on_frame) handlers_.on_frame(frame);
  }

  const std::string peer_;
  const size_t max_frame_bytes_;
  const size_t max_queue_bytes_;
  const std::chrono::milliseconds linger_;

  // Of the link's thread.
  LinkHandlers handlers_;
  FrameSplitter splitter_;
  bool readable_ = false;

  WakePipe wake_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<TlsSession> session_;
  Outbox outbox_;
  bool started_ = false;
  bool write_blocked_ = false;
  bool send_failed_ = false;
  std::optional<TimePoint> closing_;  // until when to linger
  std::optional<Error> closed_;

  std::thread thread_;
};

Status shake_hands(TlsSession& session,
                   const std::string& address,
                   TimePoint deadline,
                   const std::atomic<bool>* give_up) {
  for (;;) {
    const Progress progress = session.handshake();
    if (progress == Progress::kDone) return {};
    if (progress == Progress::kFailed || progress == Progress::kClosed) {
      return Error{ErrorCode::kUnauthorized,
                   fmt::format("{} refused the link: {}", address, session.problem())};
    }
    const short events = progress == Progress::kWantsRead ? POLLIN : POLLOUT;
    if (!wait_for(session.fd(), events, deadline, give_up)) {
      if (give_up && *give_up) return Error{ErrorCode::kCancelled, "connecting was given up"};
      return Error{ErrorCode::kDeadline, fmt::format("{} did not answer in time", address)};
    }
  }
}

}  // namespace

std::unique_ptr<Link> make_link(std::unique_ptr<TlsSession> session, const LinkOptions& options) {
  return std::make_unique<TlsLink>(std::move(session), options);
}

Result<std::unique_ptr<Link>> connect_link(const std::string& address,
                                           const LinkOptions& options,
                                           std::chrono::milliseconds timeout,
                                           const std::atomic<bool>* give_up) {
  const TimePoint deadline = SteadyClock().now() + timeout;
  auto context = TlsContext::make(options.secret);
  if (!context) return context.error();
  auto socket = connect_tcp(address, deadline, give_up);
  if (!socket) return socket.error();
  auto session = std::make_unique<TlsSession>(*std::move(context), *std::move(socket),
                                              TlsSession::Side::kClient);
  if (const Status shaken = shake_hands(*session, address, deadline, give_up); !shaken) {
    return shaken.error();
  }
  return make_link(std::move(session), options);
}

}  // namespace tandem::net
