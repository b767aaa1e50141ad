#include "app/session_options.h"

#include "dialect/dialect.h"
#include "text/tokenizer.h"

namespace tandem::app {
namespace {

std::vector<std::string> tool_dialects() {
  std::vector<std::string> names;
  for (const dialect::Dialect& dialect : dialect::all()) names.push_back(dialect.name);
  return names;
}

std::vector<std::string> reasoning_dialects() {
  std::vector<std::string> names = text::thinking_names();
  names.emplace_back("none");
  return names;
}

}  // namespace

void declare(CLI::App& app, SessionOptions& options) {
  declare(app, options.model);
  app.add_option("--context", options.context,
                 "Tokens a request may have, prompt and answer [the model's own]");
  app.add_option("--memory", options.memory_gib,
                 "GiB for weights and cache, all ranks together [half of what is free]");
  app.add_option("--prefix-cache", options.prefix_cache,
                 "Reuse keys and values of prompts that begin alike: on, or off to measure without")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option(
         "--comm", options.comm,
         "How ranks exchange tensors; ring, jaccl, nccl and mpi are MLX's own, for a tensor "
         "split (docs/serving.md)")
      ->check(CLI::IsMember({"auto", "shared-memory", "tcp", "ring", "jaccl", "nccl", "mpi"}))
      ->capture_default_str();
  app.add_option("--jaccl-devices", options.jaccl_devices,
                 "With --comm jaccl: JSON file of each rank's RDMA devices towards every other")
      ->check(CLI::ExistingFile);
  app.add_flag("--jaccl-ring", options.jaccl_ring,
               "With --comm jaccl: connect neighbours only, instead of a mesh");
  app.add_option("--mpi-library", options.mpi_library, "With --comm mpi: path of libmpi")
      ->check(CLI::ExistingFile);
  app.add_option("--tool-dialect", options.tool_dialect,
                 "How the model writes tool calls (docs/tools.md) [as its template shows]")
      ->check(CLI::IsMember(tool_dialects()));
  app.add_option("--reasoning-dialect", options.reasoning_dialect,
                 "How the model marks thinking (docs/tools.md), or none [as its tokens show]")
      ->check(CLI::IsMember(reasoning_dialects()));
  app.add_option("--rank-log", options.rank_log, "File for the ranks' log lines [stderr]");
}

}  // namespace tandem::app
