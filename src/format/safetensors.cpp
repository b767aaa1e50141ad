#include "format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace tandem::format {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the reference library's bound

Error bad_header(const std::string& message) {
  return {ErrorCode::kCorrupt, "safetensors: " + message};
}

Result<std::vector<int64_t>> parse_shape(const std::string& name, const Json& json) {
  std::vector<int64_t> shape;
  if (!json.is_array() || json.size() > 8)
    return bad_header(fmt::format("{}: shape is not a short list", name));
  for (const Json& axis : json) {
    if (!axis.is_number_unsigned() || axis.get<uint64_t>() > (uint64_t{1} << 48)) {
      return bad_header(fmt::format("{}: bad axis in shape {}", name, json.dump()));
    }
    shape.push_back(axis.get<int64_t>());
  }
  return shape;
}

/// Number of bytes, or the largest value on overflow.
uint64_t bytes_of(const std::vector<int64_t>& shape, Dtype dtype) {
  uint64_t total = size_of(dtype);
  for (const int64_t axis : shape) {
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(axis), &total))
      return std::numeric_limits<uint64_t>::max();
  }
  return total;
}

Result<SafetensorsEntry> parse_entry(const std::string& name,
                                     const Json& json,
                                     uint64_t data_bytes) {
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !json.contains("data_offsets")) {
    return bad_header(fmt::format("{}: entry lacks dtype, shape or data_offsets", name));
  }
  const auto dtype = dtype_from_name(json["dtype"].get<std::string>());
  if (!dtype)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("safetensors: {} has type {}, which is not supported", name,
                             json["dtype"].dump())};
  auto shape = parse_shape(name, json["shape"]);
  if (!shape) return shape.error();
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return bad_header(fmt::format("{}: data_offsets is not a pair of numbers", name));
  }
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  if (begin > end || end > data_bytes) {
    return bad_header(fmt::format(
        "{}: data at {} to {}, but the file holds {} bytes of data: it is truncated or damaged",
        name, begin, end, data_bytes));
  }
  const uint64_t wanted = bytes_of(*shape, *dtype);
  if (end - begin != wanted) {
    return bad_header(fmt::format("{}: type and shape need {} bytes, data_offsets give {}", name,
                                  wanted, end - begin));
  }
  return SafetensorsEntry{*dtype, std::move(*shape), begin, end - begin};
}

/// Gaps between tensors are allowed, since nothing reads them; bytes of two tensors are not.
Status check_apart(const SafetensorsHeader& header, uint64_t data_begin) {
  std::vector<const SafetensorsHeader::value_type*> by_offset;
  for (const auto& named : header)
    if (named.second.bytes > 0) by_offset.push_back(&named);
  std::ranges::sort(by_offset, {}, [](const auto* named) { return named->second.offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const auto& [first, a] = *by_offset[i - 1];
    const auto& [second, b] = *by_offset[i];
    if (b.offset >= a.offset + a.bytes) continue;
    return bad_header(
        fmt::format("{} and {} overlap: data at {} to {}, and at {} to {}: the header is damaged",
                    first, second, a.offset - data_begin, a.offset + a.bytes - data_begin,
                    b.offset - data_begin, b.offset + b.bytes - data_begin));
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   uint64_t data_begin,
                                                   uint64_t file_size) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad_header("the header is not a JSON object");
  if (data_begin > file_size) return bad_header("the header is longer than the file");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    auto entry = parse_entry(name, value, file_size - data_begin);
    if (!entry) return entry.error();
    entry->offset += data_begin;
    header.emplace(name, std::move(*entry));
  }
  if (Status apart = check_apart(header, data_begin); !apart) return apart.error();
  return header;
}

Result<SafetensorsHeader> read_safetensors_header(const MappedFile& file) {
  const auto with_path = [&](const Error& e) {
    return Error{e.code, fmt::format("{}: {}", file.path().string(), e.message)};
  };
  if (file.size() < 8)
    return with_path(bad_header(fmt::format("{} bytes, too short for a header", file.size())));
  const auto prefix = file.map(0, 8);
  if (!prefix) return prefix.error();
  uint64_t length = 0;
  std::memcpy(&length, prefix->bytes.data(), 8);
  if (length > kMostHeaderBytes || length > file.size() - 8) {
    return with_path(
        bad_header(fmt::format("header of {} bytes in a file of {}", length, file.size())));
  }
  const auto mapped = file.map(8, length);
  if (!mapped) return mapped.error();
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes.data()),
                              mapped->bytes.size());
  auto header = parse_safetensors_header(text, 8 + length, file.size());
  if (!header) return with_path(header.error());
  return header;
}

}  // namespace tandem::format
