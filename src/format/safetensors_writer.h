// Writes a safetensors file of one float32 matrix, row by row.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "base/result.h"

namespace tandem::format {

/// The header comes first, so the shape is known beforehand; finish() fails when other rows came.
class SafetensorsWriter {
 public:
  /// Errors: kIo.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                          const std::string& name,
                                          uint64_t rows,
                                          uint64_t columns);

  /// Appends whole rows.
  void append(std::span<const float> values);
  /// Errors: kIo when not every value was written, kInvalid when their number is another.
  Status finish();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  uint64_t expected_ = 0;
  uint64_t written_ = 0;
};

}  // namespace tandem::format
