#include "app/rank/checkpoint_model.h"

#include <fmt/ranges.h>
#include <mlx/mlx.h>
#include <xxhash.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "app/rank/backend_group.h"
#include "app/rank/device_choice.h"
#include "base/log.h"
#include "kernels/cores.h"
#include "runner/warm_up.h"
#include "text/checkpoint_text.h"

namespace tandem::app {
namespace {

namespace mx = mlx::core;

/// Longest silence of a peer inside a collective. A stopped rank is found by its beats first; this
/// is for links that go silent between ranks alone.
constexpr std::chrono::milliseconds kPeerDeadline{4'000};

/// The cores of a rank's threads when every rank of this machine has as many: those of rank 0, then
/// those of rank 1, and so on, from the first one again when there are too few.
std::vector<uint32_t> cores_of(uint32_t rank, uint32_t threads) {
  const std::vector<uint32_t> usable = kernels::usable_core_list();
  std::vector<uint32_t> cores;
  for (uint32_t i = 0; i < threads && !usable.empty(); ++i)
    cores.push_back(usable[(size_t{rank} * threads + i) % usable.size()]);
  return cores;
}

Result<grammar::Vocabulary> vocabulary_of(const format::Checkpoint& checkpoint, uint32_t logits) {
  auto text = text::load_model_text(checkpoint);
  if (!text) return text.error();
  return grammar::Vocabulary{
      .tokenizer = std::move(text->tokenizer), .eos = std::move(text->eos), .logits = logits};
}

}  // namespace

std::string fingerprint_of(const format::Checkpoint& checkpoint) {
  std::string text = checkpoint.config().dump();
  for (const std::string& name : checkpoint.names()) {
    text += "\n" + name;
    const auto tensor = checkpoint.describe(name);
    if (!tensor) continue;  // load() says what is wrong with it
    text += fmt::format(" {} {}", format::name(tensor->dtype), fmt::join(tensor->shape, " "));
  }
  text += std::to_string(checkpoint.weight_bytes());
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

runner::ModelOptions runner_options(const RankOptions& options) {
  const uint32_t threads =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  return {
      .path = options.path == "plain" ? tensor::Path::kPlain : tensor::Path::kFast,
      .device = mx::Device(options.device == "gpu" ? mx::Device::gpu : mx::Device::cpu),
      .kv_type = options.kv_type == "f16"   ? runner::KvType::kF16
                 : options.kv_type == "f32" ? runner::KvType::kF32
                                            : runner::KvType::kAuto,
      .threads = threads,
      .level = kernels::cpu_level_named(options.cpu_level).value_or(kernels::detect_cpu_level()),
      .cores = options.pin ? cores_of(options.rank, threads) : std::vector<uint32_t>(),
      .split = options.split == "pipeline" ? topology::Split::kPipeline : topology::Split::kTensor,
      .rank = options.rank,
      .ranks = options.size,
      .shares = options.shares,
      .memory_limit = options.memory_bytes,
      .max_context = options.max_context,
      .deterministic = options.deterministic};
}

Result<std::unique_ptr<CheckpointModel>> CheckpointModel::open(const RankOptions& given) {
  RankOptions options = given;
  const Status resolved = resolve_device(options);
  if (!resolved) return resolved.error();
  auto checkpoint = format::open_checkpoint(options.model);
  if (!checkpoint) return checkpoint.error();
  auto port = DataPort::listen(options.listen_host);
  if (!port) return port.error();
  return std::unique_ptr<CheckpointModel>(
      new CheckpointModel(std::move(options), std::move(*checkpoint), std::move(*port)));
}

CheckpointModel::CheckpointModel(RankOptions options,
                                 std::shared_ptr<const format::Checkpoint> checkpoint,
                                 DataPort port)
    : options_(std::move(options)), checkpoint_(std::move(checkpoint)), port_(std::move(port)) {}

std::string CheckpointModel::fingerprint() const {
  return fmt::format("{}:{}:{}:{}", fingerprint_of(*checkpoint_), options_.split, options_.path,
                     options_.kv_type);
}

uint64_t CheckpointModel::memory_bytes() const { return device_memory(options_); }

plan::Memory CheckpointModel::memory() const {
  return {.weight_bytes = runner_->weight_bytes(), .cache_bytes = runner_->cache_bytes()};
}

Status CheckpointModel::load(const Progress& progress) {
  if (Status usable = check_backend(options_); !usable) return usable;
  mx::disable_compile();  // MLX would run the system's compiler and load what lies in a shared
                          // folder
  // Freed buffers that MLX keeps are in no prediction: of a CPU's steps it needs few.
  mx::set_cache_limit(options_.device == "gpu" ? size_t{1} << 30 : size_t{64} << 20);
  progress("weights", 0);
  auto runner = runner::ModelRunner::load(checkpoint_, runner_options(options_));
  if (!runner) return runner.error();
  runner_ = std::move(*runner);
  compiler_ = std::make_unique<grammar::Compiler>(
      [checkpoint = checkpoint_, logits = runner_->info().vocab] {
        return vocabulary_of(*checkpoint, logits);
      },
      grammar::CompilerOptions{.most_running = 2});
  TANDEM_LOG(kInfo, "holds {} MiB of weights, room for {} tokens in {} MiB of pages; {}, {} path",
             runner_->weight_bytes() >> 20, runner_->info().pages * runner_->info().page_tokens,
             runner_->cache_bytes() >> 20, options_.device, options_.path);
  progress("weights", 1);
  if (options_.device != "gpu" || options_.size > 1) return {};
  progress("kernels", 0);
  return runner::warm_up(*runner_);
}

void CheckpointModel::prepare(const plan::Form& group) {
  const std::lock_guard lock(mutex_);
  group_ = group;
}

Status CheckpointModel::reset(uint32_t epoch) {
  std::optional<plan::Form> group;
  {
    const std::lock_guard lock(mutex_);
    group = group_;
  }
  if (!group || group->epoch != epoch)
    return Error{ErrorCode::kConflict, fmt::format("epoch {} was not prepared", epoch)};
  if (group->size > 1)
    if (Status joined = join(*group); !joined) return joined;
  return runner_->reset(epoch);
}

Status CheckpointModel::join(const plan::Form& group) {
  auto transport = port_.connect(group, kPeerDeadline);
  if (!transport) return transport.error();
  if (!plan::ends_with_process(group.comm)) {
    runner_->set_transport(std::move(*transport));
    return {};
  }
  if (std::exchange(has_joined_backend_, true))
    return Error{ErrorCode::kConflict,
                 fmt::format("a group of MLX's {} ends with its process, which cannot form another",
                             options_.backend)};
  auto joined = join_backend(options_, group.comm, **transport);
  if (!joined) return joined.error();
  TANDEM_LOG(kInfo, "joined MLX's {} as rank {} of {}", options_.backend, group.rank, group.size);
  runner_->set_group(std::move(*joined));
  return {};
}

}  // namespace tandem::app
