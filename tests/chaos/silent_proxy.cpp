#include "silent_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace tandem::chaos {
namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

SilentProxy::SilentProxy(const std::string& target) {
  target_port_ = static_cast<uint16_t>(std::stoi(target.substr(target.rfind(':') + 1)));
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  TANDEM_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  TANDEM_CHECK(::listen(listener_, 16) == 0);
  TANDEM_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { work(); });
}

SilentProxy::~SilentProxy() {
  is_over_ = true;
  thread_.join();
  ::close(listener_);
  for (const Pair& pair : pairs_) {
    ::close(pair.client);
    ::close(pair.server);
  }
}

void SilentProxy::work() {
  while (!is_over_) {
    if (silence_.exchange(false)) {
      for (Pair& pair : pairs_) pair.is_silent = true;
    }
    std::vector<pollfd> waits{{.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const Pair& pair : pairs_) {
      const short events = pair.is_silent ? short{0} : short{POLLIN};
      waits.push_back({.fd = pair.is_silent ? -1 : pair.client, .events = events, .revents = 0});
      waits.push_back({.fd = pair.is_silent ? -1 : pair.server, .events = events, .revents = 0});
    }
    if (::poll(waits.data(), waits.size(), 10) <= 0 || silence_) continue;
    for (size_t i = pairs_.size(); i-- > 0;) {
      const Pair pair = pairs_[i];
      const bool is_open = (waits[1 + 2 * i].revents == 0 || relay(pair.client, pair.server)) &&
                           (waits[2 + 2 * i].revents == 0 || relay(pair.server, pair.client));
      if (is_open) continue;
      ::close(pair.client);
      ::close(pair.server);
      pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waits[0].revents != 0) accept_one();
  }
}

void SilentProxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(target_port_);
  if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(client);
    ::close(server);
    return;
  }
  pairs_.push_back({.client = client, .server = server});
}

bool SilentProxy::relay(int from, int to) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  for (ssize_t sent = 0; got > 0 && sent < got;) {
    const ssize_t n =
        ::send(to, buffer.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += n;
  }
  return got > 0;
}

}  // namespace tandem::chaos
