#include "kernels/pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/check.h"

namespace tandem::kernels {
namespace {

// Some 30 µs: longer than the gap between two kernels of a step, far shorter than an idle moment.
constexpr int kSpins = 2000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready() holds: spins, then sleeps. `sleepers` and `ready` are sequentially
/// consistent, so a waker that makes ready() true and then reads sleepers cannot miss a sleeper.
template <class Ready>
void spin_then_sleep(std::atomic<int>& sleepers,
                     std::mutex& mutex,
                     std::condition_variable& wake,
                     Ready ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return;
    pause();
  }
  std::unique_lock lock(mutex);
  ++sleepers;
  wake.wait(lock, ready);
  --sleepers;
}

void wake_sleepers(std::atomic<int>& sleepers, std::mutex& mutex, std::condition_variable& wake) {
  if (sleepers.load() == 0) return;
  {
    const std::lock_guard lock(mutex);
  }
  wake.notify_all();
}

/// A float buffer that grows and keeps its 64-byte alignment.
class Buffer {
 public:
  float* get(size_t floats) {
    if (floats > size_) {
      size_ = std::max(floats, size_ * 2);
      data_.reset(static_cast<float*>(::operator new(size_ * sizeof(float), kAlign)));
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlign); }
  };
  std::unique_ptr<float, Free> data_;
  size_t size_ = 0;
};

struct alignas(64) WorkerBuffer {
  Buffer buffer;
};

}  // namespace

struct WorkerPool::State {
  State(size_t threads, CpuLevel cpu_level) : level(cpu_level), count_threads(threads) {}

  void work(size_t worker) {
    for (uint32_t seen = 0;;) {
      spin_then_sleep(sleepers, mutex, wake, [&] { return loop.load() != seen; });
      seen = loop.load();
      if (stop.load()) return;
      run_share(worker);
      if (pending.fetch_sub(1) == 1) wake_sleepers(waiting, done_mutex, done);
    }
  }

  void run_share(size_t worker) {
    const size_t n = count_threads;
    const size_t begin = (count * worker + n - 1) / n;
    const size_t end = (count * (worker + 1) + n - 1) / n;
    if (begin < end) body(context, begin, end, worker);
  }

  void publish() {
    loop.fetch_add(1);
    wake_sleepers(sleepers, mutex, wake);
  }

  const CpuLevel level;
  const size_t count_threads;
  std::vector<WorkerBuffer> buffers{count_threads};
  Buffer shared;

  // The loop in progress: written before `loop` changes, read after.
  size_t count = 0;
  Body body = nullptr;
  void* context = nullptr;

  alignas(64) std::atomic<uint32_t> loop{0};  // number of loops published
  std::atomic<bool> stop{false};
  std::atomic<int> sleepers{0};
  std::mutex mutex;
  std::condition_variable wake;

  alignas(64) std::atomic<size_t> pending{0};  // workers that have not finished the loop
  std::atomic<int> waiting{0};
  std::mutex done_mutex;
  std::condition_variable done;

  std::vector<std::thread> workers;
};

WorkerPool::WorkerPool(size_t threads, CpuLevel level)
    : state_(std::make_unique<State>(threads, level)) {
  TANDEM_CHECK(threads >= 1, "a pool needs the caller's thread at least");
  TANDEM_CHECK(level <= detect_cpu_level(), "this machine cannot run {} kernels", name(level));
  for (size_t worker = 1; worker < threads; ++worker) {
    state_->workers.emplace_back([state = state_.get(), worker] { state->work(worker); });
  }
}

WorkerPool::~WorkerPool() {
  state_->stop = true;
  state_->publish();
  for (std::thread& worker : state_->workers) worker.join();
}

size_t WorkerPool::threads() const { return state_->count_threads; }
CpuLevel WorkerPool::level() const { return state_->level; }

void WorkerPool::run(size_t count, Body body, void* context) {
  State& s = *state_;
  if (count == 0) return;
  if (s.count_threads == 1 || count == 1) return body(context, 0, count, 0);
  s.count = count;
  s.body = body;
  s.context = context;
  s.pending = s.count_threads - 1;
  s.publish();
  s.run_share(0);
  spin_then_sleep(s.waiting, s.done_mutex, s.done, [&] { return s.pending.load() == 0; });
}

float* WorkerPool::scratch(size_t worker, size_t floats) {
  return state_->buffers[worker].buffer.get(floats);
}

float* WorkerPool::shared_scratch(size_t floats) { return state_->shared.get(floats); }

}  // namespace tandem::kernels
