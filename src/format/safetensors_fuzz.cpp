// Any text is either a header whose tensors lie inside the file, or an error; and whatever layout
// they are in, each tensor that a model sees has the size of its shape, or is an error.
#include "base/check.h"
#include "format/safetensors.h"
#include "format/testdata/memory_checkpoint.h"

namespace {

using tandem::format::MemoryCheckpoint;
using tandem::format::SafetensorsHeader;

/// The "config" of the header's "__metadata__", which files do not have, as config.json.
nlohmann::json config_in(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto metadata = json.find("__metadata__");
  if (metadata == json.end() || !metadata->is_object()) return nlohmann::json::object();
  const auto config = metadata->find("config");
  return config != metadata->end() && config->is_object() ? *config : nlohmann::json::object();
}

/// Reads all tensors as a model would, each filled with one byte.
void read_all(const SafetensorsHeader& header, nlohmann::json config) {
  auto stored = std::make_shared<MemoryCheckpoint>(std::move(config));
  for (const auto& [name, entry] : header)
    stored->put(name, entry.dtype, entry.shape, std::vector<std::byte>(entry.bytes, std::byte{1}));
  const auto opened = tandem::format::as_read(std::move(stored));
  if (!opened) return;
  for (const std::string& name : (*opened)->names()) {
    const auto described = (*opened)->describe(name);
    TANDEM_CHECK(described.has_value(), "{} has a name, but no shape", name);
    const auto tensor = (*opened)->tensor(name);
    if (!tensor) continue;
    size_t bytes = tandem::format::size_of(tensor->dtype);
    for (const int64_t axis : tensor->shape) bytes *= static_cast<size_t>(axis);
    TANDEM_CHECK(tensor->shape == described->shape && tensor->dtype == described->dtype,
                 "{} is not what it was said to be", name);
    TANDEM_CHECK(tensor->bytes.size() == bytes, "{} has {} bytes", name, tensor->bytes.size());
  }
}

}  // namespace

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
  read_all(*header, config_in(text));
  return 0;
}
