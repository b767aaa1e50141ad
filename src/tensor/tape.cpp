#include "tensor/tape.h"

namespace tandem::tensor {

void Tape::replay() {
  for (CpuCall& call : calls_) call();
}

std::chrono::nanoseconds Tape::replay_timed() {
  using Clock = std::chrono::steady_clock;
  std::chrono::nanoseconds inside{0};
  for (CpuCall& call : calls_) {
    const Clock::time_point begin = Clock::now();
    call();
    inside += Clock::now() - begin;
  }
  return inside;
}

}  // namespace tandem::tensor
