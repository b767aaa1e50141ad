#include "store/presence.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

namespace tandem::store {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& state) { return state / "running"; }

Error presence_error(const std::filesystem::path& path) {
  return {ErrorCode::kIo,
          fmt::format("cannot make {}: {}", path.string(), std::generic_category().message(errno))};
}

/// Whether somebody holds the file's lock.
bool is_locked(const std::filesystem::path& file) {
  const Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened && ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Files of servers that were killed.
void clean(const std::filesystem::path& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (!is_locked(entry.path())) ::unlink(entry.path().c_str());
  }
}

/// Ids name files: nothing else may come of them.
bool is_id(const std::string& id) {
  return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Result<Presence> Presence::announce(const std::filesystem::path& state) {
  const std::filesystem::path folder = folder_of(state);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return presence_error(folder);
  clean(folder);
  std::random_device random;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::string id = fmt::format("{:08x}{:08x}", random(), random());
    std::filesystem::path file = folder / id;
    Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!lock) return presence_error(file);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Another server may have cleaned it away before it was locked.
    struct stat found{};
    if (::stat(file.c_str(), &found) == 0) return Presence(std::move(file), id, std::move(lock));
  }
  return Error{ErrorCode::kBusy, fmt::format("cannot lock a file in {}", folder.string())};
}

Presence::~Presence() {
  if (lock_) ::unlink(file_.c_str());
}

bool Presence::is_alive(const std::filesystem::path& state, const std::string& id) {
  return is_id(id) && is_locked(folder_of(state) / id);
}

}  // namespace tandem::store
