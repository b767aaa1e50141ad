#include "net/link_listener.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>
#include <utility>
#include <vector>

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
        context_(std::move(context)),
        on_link_(std::move(on_link)),
        address_(local_address(socket.get())),
        socket_(std::move(socket)) {
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

 private:
  struct Handshake {
    std::unique_ptr<TlsSession> session;
    TimePoint deadline;
    Progress progress = Progress::kWantsRead;
  };

  void run() {
    while (!stop_) {
      wait();
      accept_all();
      for (auto it = handshakes_.begin(); it != handshakes_.end();) {
        it = advance(*it) ? std::next(it) : handshakes_.erase(it);
      }
    }
  }

  void wait() {
    std::vector<pollfd> fds = {{wake_.fd(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
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

  void accept_all() {
    for (;;) {
      Fd peer(::accept(socket_.get(), nullptr, nullptr));
      if (!peer) return;
      if (!prepare_socket(peer.get())) continue;
      if (handshakes_.size() >= options_.max_handshakes) {
        refuse(handshakes_.front(), "too many handshakes at once");
        handshakes_.pop_front();
      }
      handshakes_.push_back(
          {std::make_unique<TlsSession>(context_, std::move(peer), TlsSession::Side::kServer),
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
    TANDEM_LOG(kWarn, "refused a link from {}: {}", peer_address(one.session->fd()), why);
  }

  const LinkListenerOptions options_;
  const std::shared_ptr<TlsContext> context_;  // shared with every session made
  const OnLink on_link_;
  const std::string address_;
  const Fd socket_;

  std::list<Handshake> handshakes_;  // of the listener's thread
  WakePipe wake_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address,
                                                   const LinkListenerOptions& options,
                                                   LinkListener::OnLink on_link) {
  auto context = TlsContext::make(options.link.secret);
  if (!context) return context.error();
  auto socket = listen_tcp(address);
  if (!socket) return socket.error();
  return std::unique_ptr<LinkListener>(std::make_unique<TlsListener>(
      *std::move(socket), *std::move(context), options, std::move(on_link)));
}

}  // namespace tandem::net
