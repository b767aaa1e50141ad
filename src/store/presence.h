// Which servers use a state folder now.
#pragma once

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace tandem::store {

/// Says in a folder that this server lives, as long as the object does: by a locked file, so that a
/// kill takes it back too. Its id is drawn anew each time.
class Presence {
 public:
  /// Errors: kIo.
  static Result<Presence> announce(const std::filesystem::path& folder);

  Presence(Presence&&) = default;
  Presence& operator=(Presence&&) = default;
  ~Presence();

  const std::string& id() const { return id_; }

  /// Whether the server of this id lives. Any thread.
  static bool is_alive(const std::filesystem::path& folder, const std::string& id);

 private:
  Presence(std::filesystem::path file, std::string id, Fd lock)
      : file_(std::move(file)), id_(std::move(id)), lock_(std::move(lock)) {}

  std::filesystem::path file_;
  std::string id_;
  Fd lock_;
};

}  // namespace tandem::store
