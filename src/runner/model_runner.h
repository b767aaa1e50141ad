// ModelRunner: executes StepPlans with a real model on this rank.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "engine/runner.h"
#include "plan/state_hash.h"
#include "runner/cache_sizes.h"
#include "runner/kv_type.h"
#include "runner/stage.h"

namespace tandem::runner {

/// Tokens of a pipeline's steps on the CPU's fast path. Stages stand idle while a prompt's first
/// step fills them and its last one leaves them: of n steps, 2 stages lose 1 in n + 1, so that
/// short steps win more than their products lose (docs/benchmarks.md, "Splits").
inline constexpr uint32_t kStageStepTokens = 128;

struct ModelOptions {
  tensor::Path path = tensor::Path::kFast;
  tensor::mx::Device device = tensor::best_device();  // of the plain path; the fast one: CPU
  tensor::mx::Dtype dtype = tensor::mx::float32;      // of activations on the plain path
  KvType kv_type = KvType::kAuto;                     // of keys and values on the fast path
  uint32_t threads = 1;
  kernels::CpuLevel level = kernels::detect_cpu_level();  // of the fast path
  std::vector<uint32_t> cores = {};                       // of the threads; empty: any

  topology::Split split = topology::Split::kTensor;
  uint32_t rank = 0;
  uint32_t ranks = 1;
  std::vector<double> shares = {};  // one a rank; empty: equal ones

  uint32_t page_tokens = 32;
  uint32_t pages = 0;         // 0: as many as fit under memory_limit, equal on every rank
  uint64_t memory_limit = 0;  // bytes a rank may use, the same number on every rank
  /// Of layers that see a window, or have recurrent state; 0: by the rules of cache_sizes.h.
  uint32_t window_pages = 0;
  uint32_t state_slots = 0;
  uint32_t state_step = 0;
  uint32_t max_context = 0;  // 0: the model's own
  /// The largest step. A pipeline's may be shorter (kStageStepTokens).
  uint32_t max_step_tokens = plan::kStepTokens;
  /// Layers that see a window have pages of their own (RunnerInfo::window), where window_pages are
  /// set or a window and a step are shorter than the context. Off: they keep all positions.
  bool frees_windows = true;

  /// On the plain path a rank alone draws tokens on the device and has two steps in flight. Off: it
  /// runs a step in complete(), and the host draws.
  bool overlap = true;
  /// One numeric class for all positions: a prompt's have the bits that an answer's would have.
  bool deterministic = false;
  /// complete() gives logits of every token of a row that wants them, not only of its last.
  bool all_logits = false;
  /// See StageOptions.
  std::function<void()> before_layers = {};
  std::chrono::nanoseconds* kernel_time = nullptr;
};

/// The local Runner of every rank. A lone rank on the plain path hands a step to the device in
/// issue() and waits for it in complete(). A lone rank on the CPU's fast path and ranks of a tensor
/// split run it in complete(); stages of a pipeline but the last run it in issue(), so that they
/// work ahead while rank 0 finishes older steps.
class ModelRunner final : public engine::Runner {
 public:
  /// Errors: what the checkpoint or the split does not allow; kInvalid for numbers of pages or
  /// slots that do not fit the model; kTooLarge when the model does not fit the limit.
  static Result<std::unique_ptr<ModelRunner>> load(
      std::shared_ptr<const format::Checkpoint> checkpoint, ModelOptions options);

  /// The group of the epoch that the next reset() begins. Requires this rank and number of ranks.
  void set_transport(std::unique_ptr<comm::Transport> transport);

  /// Instead of a transport, for a tensor split over one of MLX's own backends: the process ends
  /// with the group.
  void set_group(std::optional<tensor::mx::distributed::Group> group) {
    stage_->set_group(std::move(group));
  }

  engine::RunnerInfo info() const override { return info_; }
  Status issue(const plan::StepPlan& plan) override;
  Result<engine::StepResult> complete() override;
  Status reset(uint32_t epoch) override;
  void abort() override;

  const model::Config& config() const { return stage_->config(); }
  const std::vector<topology::Part>& parts() const { return parts_; }
  /// Bytes that this rank holds.
  uint64_t weight_bytes() const { return stage_->weight_bytes(); }
  uint64_t cache_bytes() const { return stage_->cache_bytes(); }

 private:
  struct Issued {
    plan::StepPlan plan;
    std::optional<Status> outcome = {};  // set when it has run
    std::optional<Launch> launch = {};   // set when the device has it
  };

  ModelRunner(ModelOptions options,
              std::vector<topology::Part> parts,
              std::unique_ptr<Stage> stage,
              const CacheWants& wants,
              const CacheSizes& sizes);

  Status run(const plan::StepPlan& plan);
  Status launch(Issued& step);
  Status finish(Issued& step);
  uint64_t hash(plan::StepPlan plan);
  void go_on(tensor::Step& step, const plan::StepPlan& plan) const;
  tensor::Wanted wanted() const {
    return options_.all_logits ? tensor::Wanted::kAll : tensor::Wanted::kLast;
  }
  bool works_ahead() const;

  const ModelOptions options_;
  const std::vector<topology::Part> parts_;
  engine::RunnerInfo info_;
  std::unique_ptr<Stage> stage_;

  uint32_t epoch_ = 0;
  uint64_t next_sequence_ = 0;
  std::deque<Issued> issued_;
  std::optional<Drawn> last_drawn_;                           // by the step issued last
  std::unordered_map<plan::RequestId, uint32_t> drew_last_;   // where in last_drawn_
  std::unordered_map<plan::RequestId, plan::TokenId> known_;  // drawn by the step completed last
  plan::StateHash hash_;
  bool is_void_ = false;  // a step failed: only reset() helps

  std::mutex mutex_;  // guards the pointer, which abort() reads from any thread
  std::unique_ptr<comm::Transport> transport_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace tandem::runner
