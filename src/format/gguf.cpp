#include "format/gguf.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tandem::format {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMostEntries = 1 << 20;
constexpr uint32_t kArrayType = 9;

Error corrupt(const std::string& message) { return {ErrorCode::kCorrupt, "gguf: " + message}; }

/// Reads little-endian values and stays bad after the first one that does not fit.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool is_good() const { return good_; }
  size_t place() const { return place_; }
  size_t left() const { return bytes_.size() - place_; }

  template <class T>
  T scalar() {
    T value{};
    if (!take(sizeof(T))) return value;
    std::memcpy(&value, bytes_.data() + place_ - sizeof(T), sizeof(T));
    return value;
  }

  std::string string() {
    const auto length = scalar<uint64_t>();
    if (!take(length)) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + place_ - length,
            static_cast<size_t>(length)};
  }

 private:
  bool take(uint64_t count) {
    good_ = good_ && count <= left();
    if (good_) place_ += static_cast<size_t>(count);
    return good_;
  }

  std::span<const std::byte> bytes_;
  size_t place_ = 0;
  bool good_ = true;
};

/// Calls visit(read function) for the metadata value type's number; false for an unknown type.
template <class Visit>
bool visit_type(uint32_t type, Visit&& visit) {
  switch (type) {
    case 0:
      visit([](Reader& r) { return uint64_t{r.scalar<uint8_t>()}; });
      return true;
    case 1:
      visit([](Reader& r) { return int64_t{r.scalar<int8_t>()}; });
      return true;
    case 2:
      visit([](Reader& r) { return uint64_t{r.scalar<uint16_t>()}; });
      return true;
    case 3:
      visit([](Reader& r) { return int64_t{r.scalar<int16_t>()}; });
      return true;
    case 4:
      visit([](Reader& r) { return uint64_t{r.scalar<uint32_t>()}; });
      return true;
    case 5:
      visit([](Reader& r) { return int64_t{r.scalar<int32_t>()}; });
      return true;
    case 6:
      visit([](Reader& r) { return double{r.scalar<float>()}; });
      return true;
    case 7:
      visit([](Reader& r) { return r.scalar<uint8_t>() != 0; });
      return true;
    case 8:
      visit([](Reader& r) { return r.string(); });
      return true;
    case 10:
      visit([](Reader& r) { return r.scalar<uint64_t>(); });
      return true;
    case 11:
      visit([](Reader& r) { return r.scalar<int64_t>(); });
      return true;
    case 12:
      visit([](Reader& r) { return r.scalar<double>(); });
      return true;
    default:
      return false;
  }
}

Result<GgufValue> read_array(Reader& reader) {
  const auto type = reader.scalar<uint32_t>();
  const auto count = reader.scalar<uint64_t>();
  if (!reader.is_good() || count > reader.left())
    return corrupt("an array is longer than the file");
  GgufValue value;
  const bool known = visit_type(type, [&](auto&& read) {
    std::vector<std::decay_t<decltype(read(reader))>> items;
    items.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count && reader.is_good(); ++i) items.push_back(read(reader));
    value = std::move(items);
  });
  if (!known) return corrupt(fmt::format("array of unknown type {}", type));
  return value;
}

Result<GgufValue> read_value(Reader& reader) {
  const auto type = reader.scalar<uint32_t>();
  if (type == kArrayType) return read_array(reader);
  GgufValue value;
  if (!visit_type(type, [&](auto&& read) { value = read(reader); }))
    return corrupt(fmt::format("value of unknown type {}", type));
  return value;
}

Result<GgufTensor> read_tensor(Reader& reader, const std::string& name) {
  GgufTensor tensor;
  const auto dimensions = reader.scalar<uint32_t>();
  if (!reader.is_good() || dimensions > 8)
    return corrupt(fmt::format("tensor {} has {} dimensions", name, dimensions));
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto axis = reader.scalar<uint64_t>();
    if (axis > (uint64_t{1} << 40))
      return corrupt(fmt::format("tensor {} has an axis of {}", name, axis));
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(axis));
  }
  tensor.type = reader.scalar<uint32_t>();
  tensor.offset = reader.scalar<uint64_t>();
  return tensor;
}

}  // namespace

Result<Gguf> Gguf::parse(std::span<const std::byte> bytes, uint64_t file_size) {
  Reader reader(bytes);
  if (reader.scalar<uint32_t>() != kMagic) return corrupt("the file does not begin with GGUF");
  const auto version = reader.scalar<uint32_t>();
  if (version != 2 && version != 3)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("gguf: version {}, expected 2 or 3", version)};
  const auto tensors = reader.scalar<uint64_t>();
  const auto entries = reader.scalar<uint64_t>();
  if (!reader.is_good() || tensors > kMostEntries || entries > kMostEntries)
    return corrupt("the header is damaged");

  Gguf gguf;
  for (uint64_t i = 0; i < entries && reader.is_good(); ++i) {
    std::string key = reader.string();
    auto value = read_value(reader);
    if (!value)
      return Error{value.error().code, fmt::format("{} (key {})", value.error().message, key)};
    gguf.metadata_.insert_or_assign(std::move(key), std::move(*value));
  }
  for (uint64_t i = 0; i < tensors && reader.is_good(); ++i) {
    std::string name = reader.string();
    auto tensor = read_tensor(reader, name);
    if (!tensor) return tensor.error();
    gguf.tensors_.insert_or_assign(std::move(name), std::move(*tensor));
  }
  if (!reader.is_good())
    return corrupt("the header ends before its last entry: the file is truncated");

  const uint64_t alignment = std::max<uint64_t>(1, gguf.number("general.alignment").value_or(32));
  if (alignment > (1 << 20)) return corrupt(fmt::format("alignment of {}", alignment));
  const uint64_t data = (reader.place() + alignment - 1) / alignment * alignment;
  for (auto& [name, tensor] : gguf.tensors_) {
    if (tensor.offset > file_size || data + tensor.offset > file_size) {
      return corrupt(
          fmt::format("tensor {} lies behind the end of the file: it is truncated", name));
    }
    tensor.offset += data;
  }
  return gguf;
}

Status Gguf::add_part(const Gguf& other, size_t part) {
  for (const auto& [name, tensor] : other.tensors_) {
    const auto [added, is_new] = tensors_.emplace(name, tensor);
    if (!is_new) return corrupt(fmt::format("tensor {} is in two files", name));
    added->second.part = part;
  }
  return {};
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> Gguf::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* plain = std::get_if<uint64_t>(value)) return *plain;
  const auto* with_sign = std::get_if<int64_t>(value);
  if (with_sign != nullptr && *with_sign >= 0) return static_cast<uint64_t>(*with_sign);
  return std::nullopt;
}

std::optional<double> Gguf::real(std::string_view key) const {
  const GgufValue* value = find(key);
  const auto* real = value == nullptr ? nullptr : std::get_if<double>(value);
  return real == nullptr ? std::nullopt : std::optional(*real);
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

const std::string* Gguf::text(std::string_view key) const {
  const GgufValue* value = find(key);
  return value == nullptr ? nullptr : std::get_if<std::string>(value);
}

const std::vector<std::string>* Gguf::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  return value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
}

std::vector<double> Gguf::reals(std::string_view key) const {
  const GgufValue* value = find(key);
  const auto* items = value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  return items == nullptr ? std::vector<double>{} : *items;
}

std::vector<int64_t> Gguf::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (const auto* items = std::get_if<std::vector<int64_t>>(value)) return *items;
  if (const auto* flags = std::get_if<std::vector<bool>>(value))
    return {flags->begin(), flags->end()};
  const auto* items = std::get_if<std::vector<uint64_t>>(value);
  return items == nullptr ? std::vector<int64_t>{}
                          : std::vector<int64_t>(items->begin(), items->end());
}

}  // namespace tandem::format
