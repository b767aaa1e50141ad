#include "app/session.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>
#include <utility>

#include "app/auto_split.h"
#include "app/comm_choice.h"
#include "app/system.h"
#include "base/log.h"
#include "chat/local_service.h"
#include "control/secret.h"
#include "format/checkpoint.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

uint32_t threads_of_rank(const SessionOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::max(1U, std::thread::hardware_concurrency() / options.ranks);
}

uint64_t memory_of_rank(const SessionOptions& options) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const double all = options.memory_gib > 0 ? options.memory_gib * kGib
                                            : static_cast<double>(available_memory()) / 2;
  return static_cast<uint64_t>(all / options.ranks);
}

/// The command line of a rank but for what the agent adds for each.
std::vector<std::string> rank_arguments(const SessionOptions& options,
                                        const fs::path& model,
                                        const std::string& split) {
  std::vector<std::string> arguments = {"--model",  model.string(), "--split", split,
                                        "--device", options.device, "--path",  options.path};
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.emplace_back(flag);
    arguments.push_back(value);
  };
  add("--threads", std::to_string(threads_of_rank(options)));
  add("--memory-bytes", std::to_string(memory_of_rank(options)));
  if (options.context != 0) add("--max-context", std::to_string(options.context));
  if (!options.shares.empty()) add("--shares", fmt::format("{}", fmt::join(options.shares, ",")));
  const std::vector<std::string> backend = backend_arguments(options);
  arguments.insert(arguments.end(), backend.begin(), backend.end());
  return arguments;
}

control::InstanceGeneratorOptions generator_options(const SessionOptions& options,
                                                    const fs::path& model,
                                                    const std::string& split) {
  const std::string name = fmt::format("tandem-{}", ::getpid());
  control::InstanceGeneratorOptions result;
  result.instance.name = name;
  result.instance.ranks = options.ranks;
  result.instance.comm = comm_kind(options);
  result.instance.shared_memory_prefix = fmt::format("/{}-", name);
  result.instance.make_secret = control::random_secret;
  result.program = (executable_folder() / "tandem-rank").string();
  result.output_path = options.rank_log;
  result.mpirun = find_mpirun(options);
  result.arguments = [options, name, common = rank_arguments(options, model, split)](
                         uint32_t rank, const std::string& head) {
    std::vector<std::string> arguments = {
        "--rank", std::to_string(rank), "--size", std::to_string(options.ranks), "--control",
        head,     "--instance",         name};
    arguments.insert(arguments.end(), common.begin(), common.end());
    return arguments;
  };
  return result;
}

/// Rows of logits; a tokenizer may know fewer ids.
uint32_t vocabulary_of(const format::Checkpoint& checkpoint, const text::ModelText& text) {
  return checkpoint.config().value("vocab_size", static_cast<uint32_t>(text.tokenizer->size()));
}

/// As asked for, or by the rule of topology/split_choice.h. All ranks are on this machine.
topology::SplitChoice choose_split(const SessionOptions& options,
                                   const format::Checkpoint& checkpoint) {
  if (options.split == "tensor") return {topology::Split::kTensor, "it was asked for"};
  if (options.split == "pipeline") return {topology::Split::kPipeline, "it was asked for"};
  if (plan::ends_with_process(comm_kind(options)))
    return {topology::Split::kTensor, fmt::format("--comm {} carries no other", options.comm)};
  topology::SplitChoice choice =
      auto_split(checkpoint, options.ranks, options.shares, topology::Link::kHost);
  if (options.ranks > 1) {
    TANDEM_LOG(kInfo, "split auto: {}, because {}", name(choice.split), choice.reason);
  }
  return choice;
}

Status check(const SessionOptions& options) {
  if (!options.shares.empty() && options.shares.size() != options.ranks) {
    return Error{ErrorCode::kInvalid, fmt::format("--shares names {} parts for {} ranks",
                                                  options.shares.size(), options.ranks)};
  }
  double sum = 0;
  for (const double share : options.shares) {
    if (!(share >= 0)) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("--shares must be numbers from 0, not {}", share)};
    }
    sum += share;
  }
  if (!options.shares.empty() && !(sum > 0 && std::isfinite(sum))) {
    return Error{ErrorCode::kInvalid, "--shares must give at least one rank a part"};
  }
  if (!(options.memory_gib >= 0 && std::isfinite(options.memory_gib))) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("--memory must be GiB from 0, not {}", options.memory_gib)};
  }
  return check_comm(options);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::start(const SessionOptions& options) {
  const Status checked = check(options);
  if (!checked) return checked.error();
  const auto model = find_model(options.model);
  if (!model) return model.error();
  const auto checkpoint = format::open_checkpoint(model->path);
  if (!checkpoint) return checkpoint.error();
  const topology::SplitChoice split = choose_split(options, **checkpoint);
  // The ranks load while this process reads the tokenizer.
  auto generator =
      control::InstanceGenerator::start(generator_options(options, model->path, name(split.split)));
  if (!generator) return generator.error();
  auto text = text::load_model_text(**checkpoint);
  if (!text) return text.error();

  chat::ModelInfo info;
  info.id = model->id;
  info.native_context = (*checkpoint)->config().value("max_position_embeddings", 0U);
  info.max_context =
      options.context == 0 ? info.native_context : std::min(options.context, info.native_context);
  info.max_output = info.max_context;
  info.created = modified_at(model->path);
  info.vocab = vocabulary_of(**checkpoint, *text);
  info.has_chat_template = text->chat_template != nullptr;
  return std::unique_ptr<Session>(
      new Session(std::move(*text), std::move(*generator), std::move(info), split));
}

Session::Session(text::ModelText text,
                 std::unique_ptr<control::InstanceGenerator> generator,
                 chat::ModelInfo info,
                 topology::SplitChoice split)
    : text_(std::move(text)),
      split_(std::move(split)),
      generator_(std::move(generator)),
      service_(std::make_unique<chat::LocalService>(*generator_, text_, std::move(info))) {}

// stop() gives every request its last event; only then may the service go.
Session::~Session() { generator_->stop(); }

Status Session::wait_ready(std::chrono::seconds time) {
  if (generator_->wait_ready(time)) return {};
  const std::string trouble = generator_->snapshot().trouble;
  return Error{ErrorCode::kUnavailable, fmt::format("the model did not become ready: {}",
                                                    trouble.empty() ? "time ran out" : trouble)};
}

}  // namespace tandem::app
