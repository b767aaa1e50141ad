// Memory of a step's intermediate results that stays where it is from step to step.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/cpu_op.h"

namespace tandem::tensor {

/// Blocks that are never given back to the system: a step takes what it needs, the last array that
/// uses a block frees it for later ones of the same step, and the next step begins with all of them
/// free. So the same calls with the same addresses can run again (tape.h). CPU; engine thread.
class StepMemory {
 public:
  /// Inside its scope allocate() takes memory from here. Nothing that was allocated in one scope
  /// may be used after the next begins.
  class Scope {
   public:
    explicit Scope(StepMemory& memory);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepMemory* before_;
  };

  /// Of the scope that this thread is in; null outside.
  static StepMemory* current();

  /// Gives an array without memory the smallest free block that holds it, 64-byte aligned.
  void give(array& out);

 private:
  static constexpr size_t kAlignment = 64;

  struct Block {
    array bytes;       // all of it, uint8
    size_t first = 0;  // of them that is aligned
    size_t size = 0;   // from there

    bool is_free() const { return bytes.data_shared_ptr().use_count() == 1; }
  };

  Block& add_block(size_t size);

  std::vector<Block> blocks_;
};

}  // namespace tandem::tensor
