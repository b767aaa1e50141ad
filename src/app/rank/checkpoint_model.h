// CheckpointModel: a rank of a real model.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/rank/data_port.h"
#include "app/rank/options.h"
#include "app/rank/rank_model.h"
#include "format/checkpoint.h"
#include "grammar/compiler.h"
#include "runner/model_runner.h"

namespace tandem::app {

/// How tandem-rank's options, resolved, make a runner.
runner::ModelOptions runner_options(const RankOptions& options);

/// Of what decides the numbers, as far as the header tells: hyper-parameters, each tensor's name,
/// type and shape, bytes of weights.
std::string fingerprint_of(const format::Checkpoint& checkpoint);

class CheckpointModel final : public RankModel {
 public:
  /// Reads the checkpoint's header and takes a port for tensors. Errors: of either.
  static Result<std::unique_ptr<CheckpointModel>> open(const RankOptions& options);

  std::string fingerprint() const override;
  uint64_t memory_bytes() const override;
  plan::Memory memory() const override;
  std::string data_address() const override { return port_.address(); }
  Status load(const Progress& progress) override;
  void prepare(const plan::Form& group) override;
  /// Reads the checkpoint's tokenizer when the first grammar comes.
  gen::ConstraintFactory* constraints() override { return compiler_.get(); }

  engine::RunnerInfo info() const override { return runner_->info(); }
  Status issue(const plan::StepPlan& plan) override { return runner_->issue(plan); }
  Result<engine::StepResult> complete() override { return runner_->complete(); }
  /// Meets the prepared group's other ranks first.
  Status reset(uint32_t epoch) override;
  void abort() override { runner_->abort(); }

 private:
  CheckpointModel(RankOptions options,
                  std::shared_ptr<const format::Checkpoint> checkpoint,
                  DataPort port);
  Status join(const plan::Form& group);

  const RankOptions options_;                                   // resolved
  const std::shared_ptr<const format::Checkpoint> checkpoint_;  // shared with the model's weights
  const DataPort port_;
  std::unique_ptr<runner::ModelRunner> runner_;
  std::unique_ptr<grammar::Compiler> compiler_;
  bool has_joined_backend_ = false;  // engine thread

  std::mutex mutex_;
  std::optional<plan::Form> group_;  // guarded by mutex_
};

}  // namespace tandem::app
