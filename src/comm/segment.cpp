#include "comm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::comm {
namespace {

constexpr size_t kHeader = 64;

size_t total_bytes(uint32_t size) {
  return kHeader + size * sizeof(Bell) + size_t{size} * size * sizeof(Ring);
}

#if defined(__linux__)

Result<Fd> make_memory(size_t bytes) {
  Fd fd(memfd_create("tandem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return io_error("cannot make shared memory");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return io_error("cannot size shared memory");
  }
  // No peer can take pages away under another, which would be a SIGBUS.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return io_error("cannot seal shared memory");
  }
  return fd;
}

#else

// A POSIX object whose name goes at once; only the descriptor stays.
Result<Fd> make_memory(size_t bytes) {
  const std::string name = fmt::format("/tandem.{}", getpid());
  shm_unlink(name.c_str());
  Fd fd(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!fd) return io_error("cannot make shared memory");
  shm_unlink(name.c_str());
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return io_error("cannot size shared memory");
  }
  return fd;
}

#endif

}  // namespace

Result<std::shared_ptr<Segment>> Segment::create(uint32_t size) {
  auto fd = make_memory(total_bytes(size));
  if (!fd) return fd.error();
  return map(*std::move(fd), size);  // zero pages are the initial state of every atomic in it
}

Result<std::shared_ptr<Segment>> Segment::map(Fd fd, uint32_t size) {
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return io_error("cannot look at shared memory");
  if (static_cast<size_t>(info.st_size) < total_bytes(size)) {
    return Error{.code = ErrorCode::kCorrupt,
                 .message = fmt::format("[comm] shared memory has {} bytes, expected {}",
                                        info.st_size, total_bytes(size))};
  }
  void* base = mmap(nullptr, total_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return io_error("cannot map shared memory");
  return std::shared_ptr<Segment>(new Segment(std::move(fd), static_cast<std::byte*>(base), size));
}

Segment::~Segment() { munmap(base_, total_bytes(size_)); }

std::atomic<uint32_t>& Segment::fault() { return *reinterpret_cast<std::atomic<uint32_t>*>(base_); }

Bell& Segment::bell(uint32_t rank) { return reinterpret_cast<Bell*>(base_ + kHeader)[rank]; }

Ring& Segment::ring(uint32_t from, uint32_t to) {
  return reinterpret_cast<Ring*>(base_ + kHeader + size_ * sizeof(Bell))[from * size_ + to];
}

}  // namespace tandem::comm
