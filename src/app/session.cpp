#include "app/session.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "app/comm_choice.h"
#include "app/instance_json.h"
#include "app/instance_metrics.h"
#include "app/model_info.h"
#include "app/replay_options.h"
#include "app/system.h"
#include "base/log.h"
#include "chat/local_service.h"
#include "control/rank_command.h"
#include "control/secret.h"
#include "format/checkpoint.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr double kMostGib = 1 << 20;

uint64_t memory_of_rank(const SessionOptions& options) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const double all = options.memory_gib > 0 ? options.memory_gib * kGib
                                            : static_cast<double>(available_memory()) / 2;
  return static_cast<uint64_t>(all / options.model.ranks);
}

std::vector<std::string> rank_options(const SessionOptions& options,
                                      const fs::path& model,
                                      topology::Split split) {
  std::vector<std::string> result = rank_options(options.model, model, split);
  result.emplace_back("--memory-bytes");
  result.push_back(std::to_string(memory_of_rank(options)));
  if (options.context != 0) {
    result.emplace_back("--max-context");
    result.push_back(std::to_string(options.context));
  }
  result.emplace_back("--prefix-cache");
  result.push_back(options.prefix_cache);
  for (std::string& argument : backend_arguments(options)) result.push_back(std::move(argument));
  return result;
}

control::InstanceGeneratorOptions generator_options(const SessionOptions& options,
                                                    const fs::path& model,
                                                    topology::Split split) {
  const std::string name = fmt::format("tandem-{}", ::getpid());
  control::InstanceGeneratorOptions result;
  result.instance.name = name;
  result.instance.ranks = options.model.ranks;
  result.instance.comm = comm_kind(options);
  result.instance.meeting_prefix = fmt::format("/{}-", name);
  result.instance.make_secret = control::random_secret;
  result.program = (executable_folder() / "tandem-rank").string();
  result.output_path = options.rank_log;
  result.mpirun = find_mpirun(options);
  result.arguments = [command = control::RankCommand{.instance = name,
                                                     .ranks = options.model.ranks,
                                                     .model = rank_options(options, model, split)}](
                         uint32_t rank, const std::string& head) {
    return control::rank_arguments(command, rank, head);
  };
  return result;
}

topology::SplitChoice choose_split(const SessionOptions& options,
                                   const format::Checkpoint& checkpoint) {
  if (options.model.split == "auto" && plan::ends_with_process(comm_kind(options)))
    return {topology::Split::kTensor, fmt::format("--comm {} carries no other", options.comm)};
  topology::SplitChoice choice = choose_split(options.model, checkpoint);
  choice.alone &= options.comm == "auto";  // who says how ranks talk wants ranks
  return choice;
}

SessionOptions alone(SessionOptions options) {
  options.model = alone(std::move(options.model));
  return options;
}

Status check(const SessionOptions& options) {
  if (const Status fits = check(options.model); !fits) return fits;
  if (!(options.memory_gib >= 0 && std::isfinite(options.memory_gib))) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("--memory must be GiB from 0, not {}", options.memory_gib)};
  }
  if (options.memory_gib > kMostGib)
    return Error{ErrorCode::kInvalid, fmt::format("--memory must be at most {} GiB, not {}",
                                                  kMostGib, options.memory_gib)};
  return check_comm(options);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::start(const SessionOptions& options) {
  const Status checked = check(options);
  if (!checked) return checked.error();
  const auto model = find_model(options.model.name);
  if (!model) return model.error();
  const auto checkpoint = format::open_checkpoint(model->path);
  if (!checkpoint) return checkpoint.error();
  if (const std::string notice = (*checkpoint)->notice(); !notice.empty())
    TANDEM_LOG(kWarn, "{}", notice);
  const topology::SplitChoice split = choose_split(options, **checkpoint);
  // The ranks load while this process reads the tokenizer.
  auto generator = control::InstanceGenerator::start(
      generator_options(split.alone ? alone(options) : options, model->path, split.split));
  if (!generator) return generator.error();
  auto text = text::load_model_text(**checkpoint);
  if (!text) return text.error();
  if (!options.reasoning_dialect.empty())
    text->thinking = text::thinking_markers_named(options.reasoning_dialect);

  chat::ModelInfo info = model_info(**checkpoint, options.context);
  if (const std::string notice = context_notice(info, options.context); !notice.empty())
    TANDEM_LOG(kWarn, "{}", notice);
  info.id = model->id;
  info.created = modified_at(model->path);
  info.has_chat_template = text->chat_template != nullptr;
  return std::unique_ptr<Session>(
      new Session(std::move(*text), std::move(*generator), std::move(info), split, options));
}

Result<std::unique_ptr<Session>> Session::start_ready(const SessionOptions& options) {
  auto session = start(options);
  if (!session) return session;
  control::InstanceGenerator& generator = (*session)->generator();
  if (generator.wait_ready(control::InstanceOptions().load_timeout)) return session;
  const std::string trouble = generator.snapshot().trouble;
  return Error{ErrorCode::kUnavailable, fmt::format("the model did not become ready: {}",
                                                    trouble.empty() ? "time ran out" : trouble)};
}

Session::Session(text::ModelText text,
                 std::unique_ptr<control::InstanceGenerator> generator,
                 chat::ModelInfo info,
                 topology::SplitChoice split,
                 const SessionOptions& options)
    : text_(std::move(text)),
      split_(std::move(split)),
      turns_(options.turns),
      generator_(std::move(generator)),
      service_(std::make_unique<chat::LocalService>(
          *generator_, text_, std::move(info), service_options(options))) {}

chat::LocalServiceOptions service_options(const SessionOptions& options) {
  return {.tool_dialect = options.tool_dialect,
          .thinking_wrap_up = options.thinking_wrap_up,
          .prepares_grammars = true,
          .memory = options.turns,
          .handle_key = options.handle_key};
}

// stop() gives every request its last event; only then may the service go.
Session::~Session() { generator_->stop(); }

nlohmann::ordered_json Session::instances() const {
  return nlohmann::ordered_json::array({instance_json(generator_->snapshot(), split_)});
}

std::optional<std::string> Session::unready_reason() const {
  const control::InstanceSnapshot instance = generator_->snapshot();
  const bool is_ready = instance.state == control::InstanceState::kReady;
  if (is_ready && instance.is_healthy && !instance.is_draining) return std::nullopt;
  if (instance.is_draining) return "draining";
  if (is_ready) return "no token was delivered for too long";
  return fmt::format("instance is {}{}{}", control::name(instance.state),
                     instance.trouble.empty() ? "" : ": ", instance.trouble);
}

std::optional<std::string> Session::end_reason() const {
  const control::InstanceSnapshot instance = generator_->snapshot();
  if (instance.state != control::InstanceState::kFailed) return std::nullopt;
  return instance.trouble;
}

void Session::write_metrics(protocol::MetricsText& out) const {
  app::write_metrics(out, {generator_->snapshot()});
  if (turns_) app::write_metrics(out, *turns_);
}

}  // namespace tandem::app
