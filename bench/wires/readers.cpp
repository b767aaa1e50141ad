#include "wires/readers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace tandem::bench {
namespace {

struct Reader {
  int socket = -1;
  std::string tail;  // the last bytes
  uint64_t bytes = 0;
  int64_t first_byte_ns = 0;
};

int connect_to(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  TANDEM_CHECK(connected == 0, "cannot connect to port {}", port);
  return socket;
}

void send_request(int socket, const std::string& path, std::string body, size_t number) {
  const size_t seed = body.find("SEED");
  if (seed != std::string::npos) body.replace(seed, 4, std::to_string(number));
  const std::string bytes = fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      path, body.size(), body);
  TANDEM_CHECK(::write(socket, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
               "the request was not taken");
}

/// False at the end of the stream.
bool take(Reader& reader, int64_t first_token_ns) {
  char buffer[65536];
  const ssize_t count = ::read(reader.socket, buffer, sizeof buffer);
  if (count <= 0) return false;
  if (reader.first_byte_ns == 0 && first_token_ns != 0) reader.first_byte_ns = now_ns();
  reader.bytes += static_cast<uint64_t>(count);
  reader.tail.append(buffer, static_cast<size_t>(count));
  if (reader.tail.size() > 16) reader.tail.erase(0, reader.tail.size() - 16);
  return true;
}

Reading sum_up(const std::vector<Reader>& readers, const FirstTokens& first) {
  Reading out;
  std::vector<double> waits;
  for (size_t i = 0; i < readers.size(); ++i) {
    out.bytes += readers[i].bytes;
    out.whole += readers[i].tail.ends_with("0\r\n\r\n") ? 1 : 0;
    waits.push_back(static_cast<double>(readers[i].first_byte_ns - first.at_ns[i]) * 1e-6);
  }
  std::ranges::sort(waits);
  out.first_byte_ms = waits[waits.size() / 2];
  out.last_first_byte_ms = waits.back();
  return out;
}

}  // namespace

Reading read_streams(uint16_t port,
                     const std::string& path,
                     const std::string& body,
                     size_t streams,
                     const FirstTokens& first) {
  std::vector<Reader> readers(streams);
  std::vector<pollfd> polled;
  for (size_t i = 0; i < streams; ++i) {
    readers[i].socket = connect_to(port);
    send_request(readers[i].socket, path, body, i);
    polled.push_back({.fd = readers[i].socket, .events = POLLIN, .revents = 0});
  }
  size_t open = streams;
  while (open > 0) {
    TANDEM_CHECK(::poll(polled.data(), polled.size(), 60'000) > 0, "the streams fell silent");
    for (size_t i = 0; i < streams; ++i) {
      if (polled[i].revents == 0 || take(readers[i], first.at_ns[i])) continue;
      ::close(readers[i].socket);
      polled[i].fd = -1;
      polled[i].revents = 0;
      --open;
    }
  }
  return sum_up(readers, first);
}

}  // namespace tandem::bench
