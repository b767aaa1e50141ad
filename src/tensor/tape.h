// The kernel calls of a step, recorded once and replayed for steps of the same shape.
#pragma once

#include <chrono>
#include <vector>

#include "tensor/cpu_call.h"

namespace tandem::tensor {

/// Calls with fixed arguments, in the order in which they ran. A replay touches nothing of the
/// graph that it was recorded from: that graph's hundreds of small objects are out of the caches
/// whenever a layer's weights have passed through, which costs ten times what building them does.
///
/// The arguments are addresses of weights, pools, the Step, and memory of a StepMemory: all must
/// live as long as the tape and stay where they are.
class Tape {
 public:
  void add(CpuCall call) { calls_.push_back(std::move(call)); }

  /// A node had no call: replay() would leave it out.
  void give_up() { is_whole_ = false; }
  bool is_whole() const { return is_whole_; }

  size_t size() const { return calls_.size(); }

  /// Requires is_whole(). Errors: what a call throws; it can be replayed again.
  void replay();

  /// As replay(); returns the time spent inside calls.
  std::chrono::nanoseconds replay_timed();

 private:
  std::vector<CpuCall> calls_;
  bool is_whole_ = true;
};

}  // namespace tandem::tensor
