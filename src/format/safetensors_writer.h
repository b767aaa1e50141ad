// Writes a safetensors file of one float32 matrix, row by row.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace tandem::format {

/// The header comes first, so the shape is known beforehand; finish() fails when other rows came.
/// A file takes its place in finish(), whole, and until then an older one stays; without finish()
/// nothing is left behind. A device is written to as it comes.
class SafetensorsWriter {
 public:
  SafetensorsWriter(SafetensorsWriter&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::exchange(other.part_, {})),
        out_(std::move(other.out_)),
        expected_(other.expected_),
        written_(other.written_) {}
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

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
  SafetensorsWriter() = default;

  std::filesystem::path path_;
  std::filesystem::path part_;  // the file until it is whole; empty: a device, or done
  std::ofstream out_;
  uint64_t expected_ = 0;
  uint64_t written_ = 0;
};

}  // namespace tandem::format
