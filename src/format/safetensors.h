// The safetensors header: 8 bytes little-endian length, JSON {name: {dtype, shape, data_offsets}},
// then data. Format: Hugging Face safetensors, README "Format".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/mapped_file.h"
#include "format/tensor.h"

namespace tandem::format {

struct SafetensorsEntry {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
};

using SafetensorsHeader = std::map<std::string, SafetensorsEntry, std::less<>>;

/// Checks and decodes a header's JSON text. `data_begin`: where data starts in the file;
/// `file_size`: its length. kCorrupt with the tensor's name when an entry's type, shape and offsets
/// do not fit each other or the file, and with both names when two share bytes. Gaps are allowed,
/// and so is any offset: MLX pads nothing when it saves.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   uint64_t data_begin,
                                                   uint64_t file_size);

/// Reads the header of an open file.
Result<SafetensorsHeader> read_safetensors_header(const MappedFile& file);

}  // namespace tandem::format
