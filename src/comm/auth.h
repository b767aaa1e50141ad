// Handshake: proves to both ends of a fresh connection that the other knows the secret and is a
// rank of the same group. See FORMAT.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/socket.h"

namespace tandem::comm {

/// The first bytes on a connection, from both sides.
struct Hello {
  static constexpr uint32_t kMagic = 0x484d4454;  // "TDMH"
  static constexpr uint16_t kVersion = 1;

  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t kind = 0;
  uint32_t epoch = 0;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t reserved = 0;
  std::array<std::byte, 32> nonce{};
};
static_assert(sizeof(Hello) == 56);

using Proof = std::array<std::byte, 32>;

enum class Side : uint8_t { kDialer = 'D', kAcceptor = 'A' };

/// HMAC-SHA256 over the side that proves and both hellos.
Proof prove(std::span<const std::byte> secret, Side side, const Hello& own, const Hello& other);

/// Fills the nonce from the system's generator.
Hello with_nonce(Hello hello);

/// One connection on its way to being trusted. Never blocks.
class Handshake {
 public:
  enum class State { kPending, kDone };

  Handshake(Fd socket, Side side, const Hello& own, std::span<const std::byte> secret)
      : socket_(std::move(socket)), side_(side), own_(with_nonce(own)), secret_(secret) {}

  /// Sends our hello. Requires a connected socket.
  Status begin();

  /// Goes on as far as what has arrived allows. Errors: kUnauthorized, kConflict, kPeerLost.
  Result<State> step();

  const Hello& peer() const { return peer_; }
  int fd() const { return socket_.get(); }
  Fd release() { return std::move(socket_); }

 private:
  Status send(std::span<const std::byte> bytes);
  Status judge() const;

  Fd socket_;
  Side side_;
  Hello own_;
  std::span<const std::byte> secret_;
  Hello peer_;
  Proof proof_{};
  size_t received_ = 0;  // of peer_, then of proof_
};

}  // namespace tandem::comm
