// tandem logits: float32 logits of every position, for comparison with other engines.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/command.h"
#include "app/model_options.h"
#include "app/model_path.h"
#include "app/system.h"

namespace tandem::app {
namespace {

struct Options {
  ModelOptions model;
  std::string tokens;
  std::string out;
  uint32_t chunk = 0;
};

/// Becomes tandem-rank, which links the engine.
int run(const Options& options) {
  if (const Status fits = check(options.model); !fits) return fail("logits", fits.error().message);
  const auto model = find_model(options.model.name);
  if (!model) return fail("logits", model.error().message);
  const auto checkpoint = format::open_checkpoint(model->path);
  if (!checkpoint) return fail("logits", checkpoint.error().message);
  const topology::SplitChoice split = choose_split(options.model, **checkpoint);
  std::vector<std::string> arguments = {"tandem-rank",
                                        "--rank",
                                        "0",
                                        "--size",
                                        std::to_string(options.model.ranks),
                                        "--logits-tokens",
                                        options.tokens,
                                        "--logits-out",
                                        options.out,
                                        "--chunk",
                                        std::to_string(options.chunk)};
  for (std::string& option : rank_options(options.model, model->path, split.split))
    arguments.push_back(std::move(option));
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string program = (executable_folder() / "tandem-rank").string();
  ::execv(program.c_str(), argv.data());
  return fail("logits", fmt::format("cannot start {}: {}", program, std::strerror(errno)));
}

void declare_options(CLI::App& app, Options& options) {
  declare(app, options.model);
  app.add_option("--tokens", options.tokens, "File with a JSON list of token ids")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--out", options.out,
                 "Safetensors file to write: tensor logits, [positions, vocab] float32")
      ->required();
  app.add_option("--chunk", options.chunk, "Tokens a step; 0: all at once")->capture_default_str();
}

}  // namespace

Command logits() {
  return {.name = "logits",
          .summary = "Write the logits of every position of a token list",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
