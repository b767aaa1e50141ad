// A file that is there as long as its object lives.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace tandem {

class TemporaryFile {
 public:
  /// Makes a new file in the system's temporary folder, which its owner alone can read. Errors:
  /// kIo.
  static Result<TemporaryFile> write(std::span<const std::byte> content);

  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

}  // namespace tandem
