// Replica: a rank above 0. A thread of its own executes what rank 0 plans.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "app/rank/rank_model.h"
#include "app/rank/role.h"
#include "cluster/follower.h"
#include "cluster/recording_runner.h"
#include "plan/plan_log.h"

namespace tandem::app {

class Replica final : public Role {
 public:
  /// Borrows the model, which is loaded.
  Replica(RankModel& model, std::optional<plan::PlanLogWriter> log, Say say);
  ~Replica() override;

  void form(const plan::Form& group) override;
  void abort(uint32_t epoch) override;
  void submit(plan::Submit submit) override;
  void cancel(const plan::Cancel& /*cancel*/) override {}
  void drain() override {}
  plan::Beat beat() const override;

 private:
  void run();
  void serve(const plan::Form& group);

  RankModel& model_;
  const Say say_;
  std::atomic<uint32_t> epoch_{0};
  cluster::RecordingRunner recording_;
  cluster::Follower follower_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_: what the thread is to do next.
  std::optional<plan::Form> form_;
  std::optional<uint32_t> abort_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace tandem::app
