// Any bytes: decoding a frame never crashes, and what decodes encodes to the same bytes.
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "plan/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto frame = tandem::plan::decode_frame(bytes);
  if (!frame) return 0;
  const auto again = tandem::plan::encode(*frame);
  TANDEM_CHECK(again.size() == size && std::memcmp(again.data(), data, size) == 0,
               "decoding accepted bytes that encoding would not make");
  return 0;
}
