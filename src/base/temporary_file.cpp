#include "base/temporary_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/fd.h"

namespace tandem {
namespace {

Error file_error(const char* what, const std::string& path) {
  return {ErrorCode::kIo,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

}  // namespace

Result<TemporaryFile> TemporaryFile::write(std::span<const std::byte> content) {
  std::error_code missing;
  const auto folder = std::filesystem::temp_directory_path(missing);
  if (missing) return Error{ErrorCode::kIo, "there is no temporary folder: " + missing.message()};
  std::string path = (folder / "tandem-XXXXXX").string();
  const Fd file(::mkstemp(path.data()));  // readable by the owner alone
  if (!file) return file_error("make", path);
  TemporaryFile made(std::move(path));
  if (::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return file_error("write", made.path_);
  return made;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace tandem
