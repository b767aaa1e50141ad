// Any bytes are either a header or an error.
#include "format/gguf.h"
#include "format/gguf/architecture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto gguf =
      tandem::format::Gguf::parse({reinterpret_cast<const std::byte*>(data), size}, size);
  if (!gguf) return 0;
  const auto floats = [](const std::string&) -> tandem::Result<std::vector<float>> {
    return std::vector<float>(16, 1.0F);
  };
  static_cast<void>(tandem::format::config_from_gguf(*gguf, floats));
  return 0;
}
