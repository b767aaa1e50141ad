// Any bytes: decoding a plan never crashes, and what decodes encodes to the same bytes.
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "plan/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto plan = tandem::plan::decode_plan(bytes);
  if (!plan) return 0;
  const auto again = tandem::plan::encode(*plan);
  TANDEM_CHECK(again.size() == size && std::memcmp(again.data(), data, size) == 0,
               "decoding accepted bytes that encoding would not make");
  return 0;
}
