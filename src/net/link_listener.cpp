#include "net/link_listener.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "base/log.h"
#include "net/link_impl.h"
#include "net/link_socket.h"
#include "net/link_tls.h"

namespace tandem::net {
namespace {

using Progress = TlsSession::Progress;

class TlsListener final : public LinkListener {
 public:
  TlsListener(Fd socket,
              std::shared_ptr<TlsContext> context,
              const LinkListenerOptions& options,
              OnLink on_link)
      : options_(options),
        on_link_(std::move(on_link)),
        address_(local_address(socket.get())),
        socket_(std::move(socket)),
        context_(std::move(context)) {
    thread_ = std::thread([this] { run(); });
  }

  ~TlsListener() override {
    stop_ = true;
    wake_.wake();
    thread_.join();
  }

  const std::string& address() const override { return address_; }
  uint16_t port() const override { return parse_host_port(address_)->port; }
  uint64_t refused() const override { return refused_; }

  Status set_secret(std::span<const std::byte> secret) override {
    std::shared_ptr<TlsContext> made;
    if (!secret.empty()) {
      auto context = TlsContext::make(secret);
      if (!context) return context.error();
      made = *std::move(context);
    }
    const std::lock_guard lock(mutex_);
    context_ = std::move(made);
    wake_.wake();
    return {};
  }

 private:
  struct Handshake {
    std::unique_ptr<TlsSession> session;
    TimePoint deadline;
    Progress progress = Progress::kWantsRead;
  };

  void run() {
    std::shared_ptr<TlsContext> used;
    while (!stop_) {
      const auto context = current_context();
      if (context != used) handshakes_.clear();
      used = context;
      wait(context != nullptr);
      accept_all(context);
      for (auto it = handshakes_.begin(); it != handshakes_.end();) {
        it = advance(*it) ? std::next(it) : handshakes_.erase(it);
      }
    }
  }

  std::shared_ptr<TlsContext> current_context() {
    const std::lock_guard lock(mutex_);
    return context_;
  }

  void wait(bool accepting) {
    std::vector<pollfd> fds = {{wake_.fd(), POLLIN, 0}};
    if (accepting) fds.push_back({socket_.get(), POLLIN, 0});
    int timeout = -1;
    for (const Handshake& one : handshakes_) {
      const short events = one.progress == Progress::kWantsWrite ? POLLOUT : POLLIN;
      fds.push_back({one.session->fd(), events, 0});
    }
    // The first is the oldest: its deadline comes first.
    if (!handshakes_.empty()) timeout = poll_timeout(handshakes_.front().deadline);
    ::poll(fds.data(), static_cast<nfds_t>(fds.size()), timeout);
    if ((fds[0].revents & POLLIN) != 0) wake_.clear();
  }

  /// Nothing when the secret has changed meanwhile: who connects after set_secret() meets the new
  /// one.
  void accept_all(const std::shared_ptr<TlsContext>& context) {
    const std::lock_guard lock(mutex_);
    while (context && context == context_) {
      Fd peer(::accept(socket_.get(), nullptr, nullptr));
      if (!peer) return;
      if (!prepare_socket(peer.get())) continue;
      if (handshakes_.size() >= options_.max_handshakes) {
        refuse(handshakes_.front(), "too many handshakes at once");
        handshakes_.pop_front();
      }
      handshakes_.push_back(
          {std::make_unique<TlsSession>(context, std::move(peer), TlsSession::Side::kServer),
           SteadyClock().now() + options_.handshake_timeout});
    }
  }

  /// One step of a handshake; false when it is over, either way.
  bool advance(Handshake& one) {
    one.progress = one.session->handshake();
    if (one.progress == Progress::kDone) {
      on_link_(make_link(std::move(one.session), options_.link));
      return false;
    }
    if (one.progress == Progress::kFailed || one.progress == Progress::kClosed) {
      refuse(one, one.session->problem());
      return false;
    }
    if (SteadyClock().now() < one.deadline) return true;
    refuse(one, "no handshake in time");
    return false;
  }

  void refuse(const Handshake& one, const std::string& why) {
    ++refused_;
    TANDEM_LOG(kInfo, "refused a link from {}: {}", peer_address(one.session->fd()), why);
  }

  const LinkListenerOptions options_;
  const OnLink on_link_;
  const std::string address_;
  const Fd socket_;

  std::list<Handshake> handshakes_;  // of the listener's thread
  WakePipe wake_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> refused_{0};
  std::mutex mutex_;
  std::shared_ptr<TlsContext> context_;  // guarded by mutex_; shared with every session made
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address,
                                                   const LinkListenerOptions& options,
                                                   LinkListener::OnLink on_link) {
  std::shared_ptr<TlsContext> context;
  if (!options.link.secret.empty()) {
    auto made = TlsContext::make(options.link.secret);
    if (!made) return made.error();
    context = *std::move(made);
  }
  auto socket = listen_tcp(address);
  if (!socket) return socket.error();
  return std::unique_ptr<LinkListener>(std::make_unique<TlsListener>(
      *std::move(socket), std::move(context), options, std::move(on_link)));
}

}  // namespace tandem::net
