#include "store/state_files.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>

namespace tandem::store {
namespace {

constexpr const char* kLog = "-wal";
constexpr const char* kIndex = "-shm";  // of the log: page numbers, in the memory of who reads it
constexpr const char* kParts[] = {"", kLog, kIndex};
constexpr std::chrono::milliseconds kLockPoll{5};

Error file_error(const char* what, const std::filesystem::path& path, int code) {
  return {ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, path.string(),
                                      std::generic_category().message(code))};
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_error("make the folder", folder, errno);
}

uint64_t size_of(const std::filesystem::path& path) {
  std::error_code missing;
  const uint64_t size = std::filesystem::file_size(path, missing);
  return missing ? 0 : size;
}

/// As far as the disk takes it.
void overwrite(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  const std::string zeros(size_t{1} << 20, '\0');
  for (off_t at = 0; at < size;) {
    const auto piece = std::min(zeros.size(), static_cast<size_t>(size - at));
    const ssize_t written = ::pwrite(file, zeros.data(), piece, at);
    if (written <= 0) break;
    at += written;
  }
  // Else what is cut off at once would never reach the disk.
  (void)::fsync(file);
}

}  // namespace

std::filesystem::path StateFiles::part(const char* ending) const {
  return database().string() + ending;
}

Result<Fd> StateFiles::lock(std::chrono::milliseconds limit) const {
  if (auto made = make_folder(folder_); !made) return made.error();
  const std::filesystem::path path = folder_ / "state.lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return file_error("open", path, errno);
  const auto until = std::chrono::steady_clock::now() + limit;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return file_error("lock", path, errno);
    if (std::chrono::steady_clock::now() >= until) {
      return Error{ErrorCode::kBusy,
                   fmt::format("another process holds {}: try again", path.string())};
    }
    std::this_thread::sleep_for(kLockPoll);
  }
  return file;
}

Status StateFiles::make_database() const {
  const std::filesystem::path path = database();
  // SQLite gives its log the mode of the database.
  const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made) {
    // Whoever still has the one that was removed here must not share a log with this.
    for (const char* ending : {kLog, kIndex}) {
      if (auto erased = erase(part(ending)); !erased) return erased;
    }
    return {};
  }
  if (errno != EEXIST) return file_error("make", path, errno);
  // Not through a descriptor: closing one would drop SQLite's locks in this process.
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return file_error("read", path, errno);
  if ((found.st_mode & 077) != 0 && ::chmod(path.c_str(), 0600) != 0) {
    return file_error("make private", path, errno);
  }
  return {};
}

FileId StateFiles::database_id() const {
  struct stat found{};
  if (::stat(database().c_str(), &found) != 0) return {};
  return {.device = found.st_dev, .inode = found.st_ino};
}

bool StateFiles::exist() const { return database_id() != FileId{} || !aside().empty(); }

uint64_t StateFiles::database_bytes() const { return size_of(database()); }

std::optional<uint64_t> StateFiles::log_bytes() const {
  std::error_code missing;
  const uint64_t size = std::filesystem::file_size(part(kLog), missing);
  return missing ? std::nullopt : std::optional(size);
}

bool StateFiles::is_foreign() const {
  // The database file format, "The Database Header": sqlite.org/fileformat2.html.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr size_t kApplicationAt = 68;
  std::array<unsigned char, 100> header{};
  const Fd file(::open(database().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file ||
      ::pread(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) {
    return false;
  }
  if (!std::equal(kMagic.begin(), kMagic.end(), header.begin())) return false;
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = at; i < at + bytes; ++i) value = value << 8U | header[i];
    return value;
  };
  const auto application = static_cast<int64_t>(number(kApplicationAt, 4));
  const uint64_t page = number(16, 2) == 1 ? 65536 : number(16, 2);
  // The mark of a young one is still in its log.
  if (application == 0) return size_of(database()) > page;
  return application != kApplication;
}

uint64_t StateFiles::bytes() const {
  uint64_t sum = size_of(database()) + size_of(part(kLog));
  for (const std::filesystem::path& path : aside()) sum += size_of(path);
  return sum;
}

Result<std::string> StateFiles::set_aside(std::time_t now) const {
  for (const std::filesystem::path& old : aside()) ::unlink(old.c_str());
  const std::string kept = fmt::format("state.db.corrupt-{:%Y%m%dT%H%M%SZ}", fmt::gmtime(now));
  for (const char* ending : kParts) {
    const std::filesystem::path old = part(ending);
    const std::string place = (folder_ / kept).string() + ending;
    if (::rename(old.c_str(), place.c_str()) != 0 && errno != ENOENT) {
      return file_error("set aside", old, errno);
    }
  }
  return kept;
}

std::vector<std::filesystem::path> StateFiles::aside() const {
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("state.db.corrupt")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Status StateFiles::erase_database() const {
  Status all;
  for (const char* ending : kParts) {
    if (const Status erased = erase(part(ending)); !erased && all) all = erased;
  }
  return all;
}

Status StateFiles::erase(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file_error("erase", path, errno);
  // Who has mapped an index would be killed if it were cut, and it holds no content.
  if (!file || path.string().ends_with(kIndex)) return {};
  overwrite(file.get());
  (void)!::ftruncate(file.get(), 0);
  return {};
}

}  // namespace tandem::store
