// A group of fake ranks in threads, for tests of lockstep and replay.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/follower.h"
#include "cluster/follower_links.h"
#include "cluster/lockstep.h"
#include "engine/fake_runner.h"
#include "plan/state_hash.h"

namespace tandem::cluster::testing {

inline plan::Bytes secret_of(uint32_t epoch) {
  return plan::Bytes(32, static_cast<std::byte>(epoch + 1));
}

/// A plan of one row that decodes one token of a request whose history is 0, 1, 2, …: sequence s
/// appends position s.
inline plan::StepPlan decode_plan_at(uint32_t epoch, uint64_t sequence) {
  const auto position = static_cast<uint32_t>(sequence);
  plan::Row row{.request = 1,
                .numeric_class = plan::NumericClass::kStep,
                .start = position,
                .tokens = {static_cast<plan::TokenId>(position % 250)},
                .wants_logits = true};
  for (uint32_t page = 0; page <= position / 16; ++page) row.pages.push_back(page);
  return {.epoch = epoch, .sequence = sequence, .rows = {row}};
}

/// Changes plans on their way into a runner, as a defective rank would.
class TamperingRunner final : public engine::Runner {
 public:
  TamperingRunner(engine::Runner& inner, std::function<void(plan::StepPlan&)> tamper)
      : inner_(inner), tamper_(std::move(tamper)) {}
  engine::RunnerInfo info() const override { return inner_.info(); }
  Status issue(const plan::StepPlan& plan) override {
    plan::StepPlan changed = plan;
    tamper_(changed);
    return inner_.issue(changed);
  }
  Result<engine::StepResult> complete() override { return inner_.complete(); }
  Status reset(uint32_t epoch) override { return inner_.reset(epoch); }
  void abort() override { inner_.abort(); }

 private:
  engine::Runner& inner_;
  std::function<void(plan::StepPlan&)> tamper_;
};

/// One follower in a thread of its own: joins, runs until the epoch breaks, keeps why.
class FollowerThread {
 public:
  FollowerThread(engine::Runner& runner, plan::Form form) : follower_(runner) {
    thread_ = std::thread([this, form] {
      const Status joined = follower_.join(form);
      why_ = joined ? follower_.run() : joined.error();
      follower_.leave();
    });
  }
  ~FollowerThread() {
    follower_.abort();
    if (thread_.joinable()) thread_.join();
  }
  void abort() { follower_.abort(); }
  Error why() {
    thread_.join();
    return why_;
  }

 private:
  Follower follower_;
  Error why_;
  std::thread thread_;
};

/// Rank 0's links, the fake runners of all ranks, and forms to meet with.
struct Group {
  explicit Group(uint32_t size_, engine::FakeOptions options = {}) : size(size_) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      fakes.push_back(std::make_unique<engine::FakeRunner>(options));
    }
    auto made = FollowerLinks::listen("127.0.0.1:0");
    REQUIRE(made);
    links = *std::move(made);
  }
  plan::Form form(uint32_t rank, uint32_t epoch = 1) const {
    plan::Form made{.epoch = epoch, .rank = rank, .size = size};
    made.plan_addresses.assign(size, links->address());
    made.secret = secret_of(epoch);
    return made;
  }
  /// Followers 1..size-1 on their fakes.
  std::vector<std::unique_ptr<FollowerThread>> follow(uint32_t epoch = 1) {
    std::vector<std::unique_ptr<FollowerThread>> made;
    for (uint32_t rank = 1; rank < size; ++rank) {
      made.push_back(std::make_unique<FollowerThread>(*fakes[rank], form(rank, epoch)));
    }
    return made;
  }

  uint32_t size;
  std::vector<std::unique_ptr<engine::FakeRunner>> fakes;
  std::unique_ptr<FollowerLinks> links;
};

/// Issues and completes steps [from, to) one by one; the first error, or good.
inline Status run_steps(engine::Runner& runner, uint64_t from, uint64_t to, uint32_t epoch = 1) {
  for (uint64_t sequence = from; sequence < to; ++sequence) {
    if (const Status issued = runner.issue(decode_plan_at(epoch, sequence)); !issued) return issued;
    const auto result = runner.complete();
    if (!result) return result.error();
    CHECK(result->sequence == sequence);
  }
  return {};
}

}  // namespace tandem::cluster::testing
