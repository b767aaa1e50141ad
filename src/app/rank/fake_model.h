// FakeModel: a rank without weights, for tests of everything around the model.
#pragma once

#include <string>

#include "app/rank/rank_model.h"
#include "engine/fake_runner.h"

namespace tandem::app {

class FakeModel final : public RankModel {
 public:
  explicit FakeModel(engine::FakeOptions options) : options_(options), runner_(options) {}

  std::string fingerprint() const override;
  uint64_t memory_bytes() const override;
  plan::Memory memory() const override { return {.cache_bytes = runner_.pool_bytes()}; }
  std::string data_address() const override { return {}; }
  Status load(const Progress& progress) override;
  void prepare(const plan::Form& /*group*/) override {}

  engine::RunnerInfo info() const override { return runner_.info(); }
  Status issue(const plan::StepPlan& plan) override { return runner_.issue(plan); }
  Result<engine::StepResult> complete() override { return runner_.complete(); }
  Status reset(uint32_t epoch) override { return runner_.reset(epoch); }
  void abort() override { runner_.abort(); }

 private:
  engine::FakeOptions options_;
  engine::FakeRunner runner_;
};

}  // namespace tandem::app
