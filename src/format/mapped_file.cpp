#include "format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tandem::format {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno))};
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return Error{ErrorCode::kIo, fmt::format("{} is not a regular file", path.string())};
  }
  return MappedFile(path, fd, static_cast<uint64_t>(info.st_size));
}

MappedFile::MappedFile(std::filesystem::path path, int fd, uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Mapping> MappedFile::map(uint64_t offset, uint64_t length) const {
  if (offset > size_ || length > size_ - offset) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format(
            "{} has {} bytes, but its header places data at {} to {}: the file is truncated",
            path_.string(), size_, offset, offset + length)};
  }
  if (length == 0) return Mapping{};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t start = offset / page * page;
  const size_t mapped = static_cast<size_t>(offset + length - start);
  void* base = ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, fd_, static_cast<off_t>(start));
  if (base == MAP_FAILED) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot map {}: {}", path_.string(), std::strerror(errno))};
  }
  std::shared_ptr<const void> owner(
      base, [mapped](const void* p) { ::munmap(const_cast<void*>(p), mapped); });
  const auto* data = static_cast<const std::byte*>(base) + (offset - start);
  return Mapping{{data, static_cast<size_t>(length)}, std::move(owner)};
}

}  // namespace tandem::format
