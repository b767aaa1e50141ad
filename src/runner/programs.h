// Steps that have been recorded, by their shape.
#pragma once

#include <list>
#include <memory>
#include <span>

#include "tensor/step.h"
#include "tensor/step_memory.h"
#include "tensor/tape.h"

namespace tandem::runner {

/// What a step leaves on this rank, as float32.
struct Results {
  std::span<const float> root = {};    // logits, or what the next stage is to have
  std::span<const float> pooled = {};  // [rows that pool, hidden], on rank 0
};

/// How to run any step of one shape: the calls, and the step that they look at.
struct Program {
  explicit Program(tensor::Step first) : step(std::move(first)) {}
  Program(const Program&) = delete;  // calls hold the step's address
  Program& operator=(const Program&) = delete;

  tensor::Step step;
  tensor::Tape tape = {};
  /// Where the calls leave what the graph's roots are: valid until another program runs.
  Results results = {};
};

/// The programs of the shapes that ran last. Two steps have the same shape when they have as many
/// tokens, as many that want logits, and as many rows that pool: everything else is content, which
/// calls look up in the step. One thread.
class Programs {
 public:
  /// Whether a step is worth a program: small ones, which come by the thousand.
  static bool wants(const tensor::Step& step) { return step.tokens() <= kMostTokens; }

  /// The program for this step's shape, which it becomes the step of; null when there is none, and
  /// the step is untouched.
  Program* find(tensor::Step& step);

  /// Forgets the one that has not run for longest when there are too many.
  void keep(std::unique_ptr<Program> program);

  void clear() { programs_.clear(); }
  size_t size() const { return programs_.size(); }

 private:
  static constexpr size_t kMostTokens = 64;
  static constexpr size_t kMostPrograms = 16;  // of a hundred KB each

  std::list<std::unique_ptr<Program>> programs_;  // the one that ran last comes first
};

}  // namespace tandem::runner
