// The 32 bytes in front of every message between two ranks. See FORMAT.md.
#pragma once

#include <cstdint>

namespace tandem::comm {

enum class Op : uint8_t {
  kBarrier = 1,
  kAllSum = 2,
  kAllGather = 3,
  kReduceScatter = 4,
  kPoint = 5,  // send and recv
  kFault = 6,  // the sender's group is dead; `bytes` holds its Fault
};

/// Both ends must mean the same message: all fields are compared.
struct Tag {
  static constexpr uint32_t kMagic = 0x314d4454;  // "TDM1"

  uint32_t magic = kMagic;
  uint32_t epoch = 0;
  uint32_t context = 0;  // which group of those that share the link
  Op op = Op::kBarrier;
  uint8_t dtype = 0;
  uint16_t reserved = 0;
  uint64_t sequence = 0;  // messages sent on this link in this direction before this one
  uint64_t bytes = 0;

  bool operator==(const Tag&) const = default;
};
static_assert(sizeof(Tag) == 32);

const char* name(Op op);

}  // namespace tandem::comm
