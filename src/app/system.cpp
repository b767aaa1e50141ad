#include "app/system.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <fstream>
#include <string>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace tandem::app {

std::string platform() {
  struct utsname names{};
  ::uname(&names);
  std::string system = names.sysname;
  for (char& c : system) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return system + "-" + names.machine;
}

std::filesystem::path executable_folder() {
#ifdef __APPLE__
  std::array<char, 4096> buffer{};
  uint32_t size = buffer.size();
  if (_NSGetExecutablePath(buffer.data(), &size) != 0) return ".";
  return std::filesystem::canonical(buffer.data()).parent_path();
#else
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
#endif
}

uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  std::string unit;
  while (info >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

int64_t modified_at(const std::filesystem::path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_mtime) : 0;
}

}  // namespace tandem::app
