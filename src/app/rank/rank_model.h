// RankModel: this rank's part of a model, as tandem-rank sees it. wiring.cpp makes the one asked
// for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/runner.h"
#include "gen/constraint.h"
#include "plan/frames.h"

namespace tandem::app {

/// A Runner that can also load and join groups. Construction reads no more than headers.
class RankModel : public engine::Runner {
 public:
  /// What is being done, and how much of loading is done: 0 … 1.
  using Progress = std::function<void(const std::string& text, float fraction)>;

  /// Equal on ranks that serve the same checkpoint.
  virtual std::string fingerprint() const = 0;

  /// Of this rank's device, all of it.
  virtual uint64_t memory_bytes() const = 0;

  /// What it holds: weight_bytes and cache_bytes. Any thread, once loaded.
  virtual plan::Memory memory() const = 0;

  /// "host:port" of this rank's listener for tensors; empty when it has none.
  virtual std::string data_address() const = 0;

  /// Once, before everything of Runner (info() too). On the main thread.
  virtual Status load(const Progress& progress) = 0;

  /// The group that the next reset() joins, which may block until all its ranks have come, at most
  /// group.timeout. Any thread. Weights stay loaded.
  virtual void prepare(const plan::Form& group) = 0;

  /// What requests with a grammar are bound by on rank 0, once loaded; null: there is nothing.
  virtual gen::ConstraintFactory* constraints() { return nullptr; }
};

}  // namespace tandem::app
