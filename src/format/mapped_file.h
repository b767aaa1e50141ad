// Read-only mappings of parts of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace tandem::format {

/// Bytes of a file and what keeps them mapped.
struct Mapping {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // shared: unmapped with the last view
};

/// An open file whose ranges can be mapped one by one, so that a rank maps only its own weights.
/// Thread-safe.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  /// Maps [offset, offset + length). kCorrupt when the file is shorter (a read there would be
  /// SIGBUS).
  Result<Mapping> map(uint64_t offset, uint64_t length) const;

 private:
  MappedFile(std::filesystem::path path, int fd, uint64_t size);

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tandem::format
