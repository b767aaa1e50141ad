// Any bytes are either a header or an error.
#include "format/gguf.h"
#include "format/gguf_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto gguf =
      tandem::format::Gguf::parse({reinterpret_cast<const std::byte*>(data), size}, size);
  if (gguf) static_cast<void>(tandem::format::config_from_gguf(*gguf));
  return 0;
}
