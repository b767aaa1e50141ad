#include "app/session_options.h"

namespace tandem::app {

void declare(CLI::App& app, SessionOptions& options) {
  declare(app, options.model);
  app.add_option("--context", options.context,
                 "Tokens a request may have, prompt and answer [the model's own]");
  app.add_option("--memory", options.memory_gib,
                 "GiB for weights and cache, all ranks together [half of what is free]");
  app.add_option("--comm", options.comm, "How ranks exchange tensors")
      ->check(CLI::IsMember({"auto", "shared-memory", "tcp"}))
      ->capture_default_str();
  app.add_option("--rank-log", options.rank_log, "File for the ranks' log lines [stderr]");
}

}  // namespace tandem::app
