// A TCP relay on loopback that can fall silent: then connections stay open and nothing passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tandem::chaos {

class SilentProxy {
 public:
  /// Relays every connection to "host:port" on loopback.
  explicit SilentProxy(const std::string& target);
  ~SilentProxy();

  SilentProxy(const SilentProxy&) = delete;
  SilentProxy& operator=(const SilentProxy&) = delete;

  const std::string& address() const { return address_; }

  /// Connections there are now fall silent; later ones pass.
  void silence() { silence_ = true; }

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    bool is_silent = false;
  };

  void work();
  void accept_one();
  static bool relay(int from, int to);

  uint16_t target_port_ = 0;
  int listener_ = -1;
  std::string address_;
  std::vector<Pair> pairs_;
  std::atomic<bool> silence_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace tandem::chaos
