// Any text is either a header whose tensors lie inside the file, or an error.
#include "base/check.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kBegin = 64;
  constexpr uint64_t kFile = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto header = tandem::format::parse_safetensors_header(text, kBegin, kFile);
  if (!header) return 0;
  for (const auto& [name, entry] : *header) {
    TANDEM_CHECK(entry.offset >= kBegin && entry.offset + entry.bytes <= kFile,
                 "{} leaves the file", name);
  }
  return 0;
}
