// Leader: rank 0. Runs the engine over the lockstep of all ranks, and reports to the head.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "app/rank/rank_model.h"
#include "app/rank/role.h"
#include "cluster/follower_links.h"
#include "cluster/lockstep.h"
#include "cluster/recording_runner.h"
#include "engine/engine.h"
#include "plan/plan_log.h"

namespace tandem::app {

class Leader final : public Role {
 public:
  /// Borrows the model, which is loaded, and the links. Of `schedule` the policy counts.
  Leader(RankModel& model,
         cluster::FollowerLinks& links,
         std::optional<plan::PlanLogWriter> log,
         Say say,
         const schedule::SchedulerOptions& schedule = {});

  void form(const plan::Form& group) override;
  void abort(uint32_t epoch) override;
  void submit(plan::Submit submit) override;
  void cancel(const plan::Cancel& cancel) override;
  void drain() override;
  plan::Beat beat() const override;
  std::optional<plan::EngineFigures> figures() const override;

 private:
  void ready(uint32_t epoch);
  void fault(uint32_t epoch, const Error& why);

  RankModel& model_;
  cluster::FollowerLinks& links_;
  const Say say_;
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> faulted_{0};  // the last epoch whose fault was told
  cluster::LockstepRunner lockstep_;
  cluster::RecordingRunner recording_;
  engine::Engine engine_;  // last: its thread uses all of the above
};

}  // namespace tandem::app
