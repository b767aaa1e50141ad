// Any bytes, cut anywhere, give the same valid UTF-8.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/detokenizer.h"

namespace {

using tandem::text::Utf8Assembler;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  Utf8Assembler whole;
  const std::string expected = whole.push(bytes);
  const size_t step = 1 + data[0] % 7;
  Utf8Assembler pieces;
  std::string joined;
  for (size_t at = 0; at < bytes.size(); at += step) joined += pieces.push(bytes.substr(at, step));
  require(joined == expected);
  require(pieces.pending() == whole.pending());
  require(whole.pending() < 4);
  Utf8Assembler again;
  require(again.push(expected) == expected);
  require(again.pending() == 0);
  return 0;
}
