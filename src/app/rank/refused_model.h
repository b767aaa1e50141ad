// RefusedModel: stands for a model that cannot be opened, until the head was told why.
#pragma once

#include <string>
#include <utility>

#include "app/rank/rank_model.h"

namespace tandem::app {

/// Says hello as any rank does, without a fingerprint, and fails to load with this error.
class RefusedModel final : public RankModel {
 public:
  explicit RefusedModel(Error why) : why_(std::move(why)) {}

  std::string fingerprint() const override { return {}; }
  uint64_t memory_bytes() const override { return 0; }
  plan::Memory memory() const override { return {}; }
  std::string data_address() const override { return {}; }
  Status load(const Progress& /*progress*/) override { return why_; }
  void prepare(const plan::Form& /*group*/) override {}

  engine::RunnerInfo info() const override { return {}; }
  Status issue(const plan::StepPlan& /*plan*/) override { return why_; }
  Result<engine::StepResult> complete() override { return why_; }
  Status reset(uint32_t /*epoch*/) override { return why_; }
  void abort() override {}

 private:
  const Error why_;
};

}  // namespace tandem::app
