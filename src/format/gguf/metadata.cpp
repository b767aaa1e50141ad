#include "format/gguf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace tandem::format {

nlohmann::json GgufMetadata::value(std::string_view key) const {
  const auto found = gguf_.metadata().find(full(key));
  if (found == gguf_.metadata().end()) return nullptr;
  return std::visit(
      [](const auto& value) -> nlohmann::json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>)
          return value;
        else if constexpr (std::is_arithmetic_v<T>)
          return value == T{0} ? nlohmann::json() : nlohmann::json(value);
        else
          return nullptr;
      },
      found->second);
}

std::optional<uint64_t> GgufMetadata::largest(std::string_view key) const {
  if (const auto one = number(key)) return one;
  const auto all = list(key);
  if (all.empty()) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, *std::ranges::max_element(all)));
}

int64_t GgufMetadata::rows(std::string_view tensor) const {
  const auto found = gguf_.tensors().find(tensor);
  return found == gguf_.tensors().end() || found->second.shape.empty() ? 0 : found->second.shape[0];
}

bool GgufMetadata::has(uint64_t layer, std::string_view tensor) const {
  return has(fmt::format("blk.{}.{}", layer, tensor));
}

uint64_t GgufMetadata::layers() const {
  const uint64_t all = number("block_count").value_or(0);
  const uint64_t further = number("nextn_predict_layers").value_or(0);
  return all > further ? all - further : 0;
}

}  // namespace tandem::format
