// tandem logits: float32 logits of every position, for comparison with other engines.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "app/comm_choice.h"
#include "app/command.h"
#include "app/model_path.h"
#include "app/session_options.h"
#include "app/system.h"

namespace tandem::app {
namespace {

struct Options {
  SessionOptions session;
  std::string tokens;
  std::string out;
  uint32_t chunk = 0;
};

/// Becomes tandem-rank, which links the engine.
int run(const Options& options) {
  if (plan::ends_with_process(comm_kind(options.session)))
    return fail("logits",
                "its ranks are threads of one process: --comm must be one of tandem's own");
  const auto model = find_model(options.session.model);
  if (!model) return fail("logits", model.error().message);
  const std::string split = options.session.split == "auto" ? "tensor" : options.session.split;
  std::vector<std::string> arguments = {"tandem-rank",
                                        "--rank",
                                        "0",
                                        "--size",
                                        std::to_string(options.session.ranks),
                                        "--model",
                                        model->path.string(),
                                        "--split",
                                        split,
                                        "--device",
                                        options.session.device,
                                        "--path",
                                        options.session.path,
                                        "--threads",
                                        std::to_string(options.session.threads),
                                        "--logits-tokens",
                                        options.tokens,
                                        "--logits-out",
                                        options.out,
                                        "--chunk",
                                        std::to_string(options.chunk)};
  if (!options.session.shares.empty()) {
    arguments.emplace_back("--shares");
    arguments.push_back(fmt::format("{}", fmt::join(options.session.shares, ",")));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string program = (executable_folder() / "tandem-rank").string();
  ::execv(program.c_str(), argv.data());
  return fail("logits", fmt::format("cannot start {}: {}", program, std::strerror(errno)));
}

}  // namespace

Command logits() {
  return {.name = "logits",
          .summary = "Write the logits of every position of a token list",
          .declare = [](CLI::App& app) {
            const auto options =
                std::make_shared<Options>();  // shared: the parser fills what the run reads
            declare(app, options->session);
            app.add_option("--tokens", options->tokens, "File with a JSON list of token ids")
                ->required()
                ->check(CLI::ExistingFile);
            app.add_option("--out", options->out,
                           "Safetensors file to write: tensor logits, [positions, vocab] float32")
                ->required();
            app.add_option("--chunk", options->chunk, "Tokens a step; 0: all at once")
                ->capture_default_str();
            return [options] { return run(*options); };
          }};
}

}  // namespace tandem::app
