// Runs the ranks of a model as threads of this process over a shared-memory transport.
#pragma once

#include <unistd.h>

#include <atomic>
#include <thread>

#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {

/// What the ranks of one run gave.
struct RanksOutcome {
  std::vector<Logits> logits;                 // of rank 0, one a plan
  std::vector<Logits> pooled;                 // the same
  std::vector<std::vector<uint64_t>> hashes;  // [rank][plan]
  std::vector<uint64_t> weight_bytes;         // [rank]
  std::vector<Error> errors;                  // of any rank
  std::chrono::steady_clock::duration
      elapsed{};  // from the first issue to the last completion on rank 0
};

struct RanksSetup {
  model::RandomOptions model = {};
  std::shared_ptr<const format::Checkpoint> checkpoint = nullptr;  // in place of a random model
  tensor::Path path = tensor::Path::kFast;
  KvType kv_type = KvType::kAuto;
  topology::Split split = topology::Split::kTensor;
  uint32_t ranks = 1;
  std::vector<double> shares = {};
  uint32_t page_tokens = 4;
  uint32_t pages = 64;
  uint32_t window_pages = 0;  // 0: layers keep all positions
  std::function<void()> before_layers = {};
  bool is_serial = false;  // rank 0 issues a step only when the one before is complete
  /// Lets a rank execute something else than it was sent.
  std::function<void(uint32_t rank, plan::StepPlan&)> tamper = {};
};

inline std::unique_ptr<comm::Transport> join_group(const std::string& name,
                                                   uint32_t rank,
                                                   uint32_t ranks) {
  auto transport = comm::connect({.kind = comm::Kind::kSharedMemory,
                                  .rank = rank,
                                  .size = ranks,
                                  .epoch = 0,
                                  .name = name,
                                  .secret = std::vector<std::byte>(32, std::byte{7}),
                                  .deadline = std::chrono::milliseconds(60'000)});
  TANDEM_CHECK(transport.has_value(), "{}", transport.error().message);
  return std::move(transport).value();
}

/// How many plans rank 0 has issued; the others get a plan only then, as from a lockstep.
using Sent = std::atomic<size_t>;

inline void wait_for_plan(const Sent& sent, size_t index) {
  for (size_t now = sent.load(); now <= index; now = sent.load()) sent.wait(now);
}

/// Issues up to depth plans ahead, as an engine does, and completes them in order.
inline Status drive(ModelRunner& runner,
                    const std::vector<plan::StepPlan>& plans,
                    const RanksSetup& setup,
                    uint32_t rank,
                    Sent& sent,
                    RanksOutcome& out) {
  const uint32_t depth = setup.is_serial ? 1 : runner.info().depth;
  size_t issued = 0;
  for (size_t completed = 0; completed < plans.size(); ++completed) {
    for (; issued < plans.size() && issued - completed < depth; ++issued) {
      if (rank == 0) {
        sent = issued + 1;
        sent.notify_all();
      } else if (issued > completed && sent.load() <= issued) {
        break;  // finish what is there rather than wait
      }
      wait_for_plan(sent, issued);
      plan::StepPlan plan = plans[issued];
      if (setup.tamper) setup.tamper(rank, plan);
      const Status status = runner.issue(plan);
      if (!status) return status;
    }
    const auto result = runner.complete();
    if (!result) return result.error();
    out.hashes[rank].push_back(result->state_hash);
    if (rank != 0) continue;
    out.logits.push_back(to_vector(result->logits));
    out.pooled.push_back(to_vector(result->pooled));
  }
  return {};
}

/// Loads `setup.ranks` runners, each in its own thread, and runs the plans on them.
inline RanksOutcome run_ranks(const RanksSetup& setup, const std::vector<plan::StepPlan>& plans) {
  static std::atomic<int> count = 0;
  const std::string name = fmt::format("runner_test.{}.{}", getpid(), count++);
  std::vector<RanksOutcome> parts(setup.ranks);
  Sent sent = 0;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < setup.ranks; ++rank)
    threads.emplace_back([&, rank] {
      RanksOutcome& out = parts[rank];
      out.hashes.resize(setup.ranks);
      auto runner = ModelRunner::load(
          setup.checkpoint ? setup.checkpoint
                           : std::make_shared<model::RandomCheckpoint>(setup.model),
          {.path = setup.path,
           .kv_type = setup.kv_type,
           .threads = 1,
           .split = setup.split,
           .rank = rank,
           .ranks = setup.ranks,
           .shares = setup.shares,
           .page_tokens = setup.page_tokens,
           .pages = setup.pages,
           .window_pages = setup.window_pages,
           .max_step_tokens = setup.window_pages != 0 ? 24U : plan::kStepTokens,
           .frees_windows = setup.window_pages != 0,
           .before_layers = setup.before_layers});
      if (!runner) return out.errors.push_back(runner.error());
      out.weight_bytes.push_back((*runner)->weight_bytes());
      if (setup.ranks > 1) (*runner)->set_transport(join_group(name, rank, setup.ranks));
      TANDEM_CHECK((*runner)->reset(0).has_value(), "reset failed");
      const auto begin = std::chrono::steady_clock::now();
      const Status driven = drive(**runner, plans, setup, rank, sent, out);
      out.elapsed = std::chrono::steady_clock::now() - begin;
      if (!driven) out.errors.push_back(driven.error());
      if (rank != 0) return;
      sent = plans.size();  // nobody waits for a rank 0 that failed
      sent.notify_all();
    });
  for (std::thread& thread : threads) thread.join();
  RanksOutcome all = std::move(parts[0]);
  for (uint32_t rank = 1; rank < setup.ranks; ++rank) {
    all.hashes[rank] = parts[rank].hashes[rank];
    all.errors.insert(all.errors.end(), parts[rank].errors.begin(), parts[rank].errors.end());
    all.weight_bytes.insert(all.weight_bytes.end(), parts[rank].weight_bytes.begin(),
                            parts[rank].weight_bytes.end());
  }
  return all;
}

}  // namespace tandem::runner
