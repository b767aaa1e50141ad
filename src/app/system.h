// What this machine and process are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tandem::app {

/// Such as "linux-x86_64".
std::string platform();

/// The folder of the running executable, where tandem-rank lies too.
std::filesystem::path executable_folder();

/// Bytes of memory that programs can still take.
uint64_t available_memory();

/// Unix seconds of a file's or folder's last change; 0 when unknown.
int64_t modified_at(const std::filesystem::path& path);

}  // namespace tandem::app
