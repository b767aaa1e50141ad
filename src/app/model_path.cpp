#include "app/model_path.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "app/cache_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultFile = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string id_of(const fs::path& path) {
  const fs::path plain = fs::weakly_canonical(path);
  return plain.extension() == ".gguf" ? plain.stem().string() : plain.filename().string();
}

/// Runs the fetch script of this checkout; it prints what it does to stderr.
Status fetch_default() {
  const std::string home = environment("TANDEM_HOME");
  const fs::path script = fs::path(home) / "tools" / "fetch_default_model.sh";
  if (home.empty() || !fs::exists(script)) {
    return Error{ErrorCode::kNotFound,
                 "the default model is not in the cache; start through ./tandem, which fetches it, "
                 "or name a model"};
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl(script.c_str(), script.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    return Error{ErrorCode::kUnavailable,
                 "the default model could not be fetched (see above); name a model to use another"};
  }
  return {};
}

Result<ModelPath> default_model() {
  const fs::path cache = cache_folder();
  if (cache.empty())
    return Error{ErrorCode::kNotFound,
                 "there is no cache folder for the default model: set HOME, or name a model"};
  const fs::path path = cache / "tandem" / "models" / kDefaultFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const Status fetched = fetch_default();
    if (!fetched) return fetched.error();
  }
  return ModelPath{path, id_of(path)};
}

/// Where huggingface_hub caches models; empty when there is no such place.
fs::path hub_folder() {
  if (const std::string given = environment("HF_HUB_CACHE"); !given.empty()) return given;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const fs::path cache = cache_folder();
  return cache.empty() ? fs::path() : cache / "huggingface" / "hub";
}

/// The snapshot that refs/main names, as huggingface_hub lays out its cache; empty when there is
/// none.
fs::path cached_snapshot(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || name.find('/', slash + 1) != std::string::npos ||
      name.find("..") != std::string::npos)
    return {};
  const fs::path hub = hub_folder();
  if (hub.empty()) return {};
  const fs::path model =
      hub / fmt::format("models--{}--{}", name.substr(0, slash), name.substr(slash + 1));
  std::string revision;
  std::ifstream(model / "refs" / "main") >> revision;
  const fs::path snapshot = model / "snapshots" / revision;
  return !revision.empty() && fs::exists(snapshot / "config.json") ? snapshot : fs::path();
}

}  // namespace

Result<ModelPath> find_model(const std::string& name) {
  if (name.empty()) return default_model();
  std::error_code ignored;
  if (fs::is_directory(name, ignored) || fs::is_regular_file(name, ignored))
    return ModelPath{name, id_of(name)};
  if (fs::exists(name, ignored))
    return Error{ErrorCode::kInvalid,
                 fmt::format("{} is neither a folder nor a regular file: a model is one", name)};
  const fs::path snapshot = cached_snapshot(name);
  if (!snapshot.empty()) return ModelPath{snapshot, name};
  return Error{
      ErrorCode::kNotFound,
      fmt::format("no model '{}': expected a folder with config.json and *.safetensors, a .gguf "
                  "file, or org/name that is in the "
                  "Hugging Face cache of this machine (fetch one with: hf download org/name)",
                  name)};
}

}  // namespace tandem::app
