#include "app/rank/options.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "app/option_words.h"
#include "app/rank/rank.h"

namespace tandem::app {
namespace {

void add_fake_options(CLI::App& app, RankOptions& options) {
  engine::FakeOptions& fake = options.fake_options;
  app.add_flag("--fake", options.fake, "Serve a fake model, without weights (for tests)");
  app.add_option_function<uint32_t>(
      "--fake-step-us", [&fake](uint32_t us) { fake.step_delay = std::chrono::microseconds(us); },
      "Fake: what a step takes, in microseconds");
  app.add_option_function<uint32_t>(
      "--fake-token-us", [&fake](uint32_t us) { fake.token_delay = std::chrono::microseconds(us); },
      "Fake: what each new token of a step takes in addition");
  app.add_option("--fake-pages", fake.pages, "Fake: pages in the pool");
  app.add_flag_callback(
      "--fake-draws", [&fake] { fake.depth = 2, fake.draws = true; },
      "Fake: draw tokens, with two steps in flight");
  app.add_option_function<int32_t>(
      "--fake-die-at-token", [&fake](int32_t token) { fake.die_at_token = token; },
      "Fake: abort the process when a row holds this token");
}

/// on or off, as a word, so that the head can pass on what it was given.
void add_prefix_cache(CLI::App& app, RankOptions& options) {
  app.add_option_function<std::string>(
         "--prefix-cache",
         [&options](const std::string& word) { options.prefix_reuse = word == "on"; },
         "Reuse keys and values of prompts that begin alike")
      ->check(CLI::IsMember({"on", "off"}));
}

void add_model_options(CLI::App& app, RankOptions& options) {
  app.add_option("--model", options.model, "Folder or GGUF file of the checkpoint");
  app.add_option("--split", options.split, "How ranks share the model")
      ->check(CLI::IsMember({"tensor", "pipeline"}));
  app.add_option("--backend", options.backend, "MLX's own backend that carries tensors")
      ->check(CLI::IsMember({"ring", "jaccl", "nccl", "mpi"}));
  app.add_option("--jaccl-devices", options.jaccl_devices, "JACCL: file of RDMA devices");
  app.add_flag("--jaccl-ring", options.jaccl_ring, "JACCL: neighbours only");
  app.add_option("--mpi-library", options.mpi_library, "MPI: path of libmpi");
  app.add_option("--shares", options.shares, "Share of each rank")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--threads", options.threads, "Threads that compute; 0: all cores");
  app.add_option("--device", options.device, "What computes")->check(device_words());
  app.add_option("--path", options.path, "Kernels")->check(path_words());
  app.add_option("--cpu-level", options.cpu_level, "Instructions of the fast path, at most")
      ->check(cpu_level_words());
  app.add_option("--kv-type", options.kv_type, "Of keys and values on the fast path")
      ->check(kv_type_words());
  app.add_flag("--deterministic", options.deterministic,
               "One numeric class; refuse where tokens may depend on what else is in a batch");
  app.add_flag("--pin", options.pin, "Keep each worker thread on a core of its own");
  app.add_option("--memory-bytes", options.memory_bytes, "Limit of this rank's weights and pages");
  app.add_option("--max-context", options.max_context, "Tokens a request may have");
}

void add_logits_options(CLI::App& app, RankOptions& options) {
  CLI::Option* tokens = app.add_option("--logits-tokens", options.logits_tokens,
                                       "JSON list of token ids: write their logits and end");
  app.add_option("--logits-out", options.logits_out, "Safetensors file for them")->needs(tokens);
  app.add_option("--chunk", options.chunk, "With them: tokens a step; 0: all at once")
      ->needs(tokens);
}

/// What options demand of each other.
void check(const RankOptions& options) {
  if (options.control.empty() && options.logits_tokens.empty())
    throw CLI::RequiredError("--control");
  if (options.rank >= options.size) throw CLI::ValidationError("--rank", "must be below --size");
  if (options.fake == !options.model.empty()) {
    throw CLI::ValidationError("--model", "give either --model or --fake");
  }
  if (!options.backend.empty() && (options.split != "tensor" || options.fake)) {
    throw CLI::ValidationError("--backend", "needs a model and --split tensor");
  }
  if (!options.shares.empty() && options.shares.size() != options.size) {
    throw CLI::ValidationError("--shares", "needs one value for each rank");
  }
}

}  // namespace

std::variant<RankOptions, int> parse_rank_options(int argc, const char* const* argv) {
  RankOptions options;
  CLI::App app("One rank of a tandem instance; started by tandem, not by hand", "tandem-rank");
  app.add_option("--rank", options.rank, "This rank")->required();
  app.add_option("--size", options.size, "Ranks of the instance")->required();
  app.add_option("--control", options.control, "HOST:PORT of the head's control links");
  app.add_option("--secret-fd", options.secret_fd, "Read the control secret here, to its end");
  app.add_option("--secret-file", options.secret_file, "Read it from this file instead");
  app.add_option("--instance", options.instance, "Name of the instance");
  app.add_option("--plan-log", options.plan_log, "Write executed plans to this file");
  add_fake_options(app, options);
  add_model_options(app, options);
  add_prefix_cache(app, options);
  add_logits_options(app, options);
  try {
    app.parse(argc, argv);
    check(options);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : static_cast<int>(RankExit::kUsage);
  }
  return options;
}

}  // namespace tandem::app
