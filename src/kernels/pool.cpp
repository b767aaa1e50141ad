#include "kernels/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cores.h"

namespace tandem::kernels {
namespace {

// Longer than the gap between two kernels of a step, far shorter than an idle moment.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerLook = 32;  // at the clock

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
  // Most waits are over before the clock is looked at.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (true) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (ready()) return;
      pause();
    }
    const auto now = std::chrono::steady_clock::now();
    if (!deadline) deadline = now + kSpin;
    if (now >= *deadline) break;
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
      const size_t grown = std::max(floats, size_ + size_ / 4);
      data_.reset();  // first, so that no two are held at once
      size_ = 0;
      data_.reset(static_cast<float*>(::operator new(grown * sizeof(float), kAlign)));
      size_ = grown;
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
  State(size_t threads, CpuLevel cpu_level, std::vector<uint32_t> core_list)
      : level(cpu_level), count_threads(threads), cores(std::move(core_list)) {}

  /// The loop in progress. Changes only while every share is used up, and a chunk is claimed from
  /// the word that was read before this: so it is a chunk of this loop.
  struct Loop {
    std::atomic<size_t> count{0};
    std::atomic<Body> body{nullptr};
    std::atomic<void*> context{nullptr};
  };

  /// What is left of a worker's share: the loop's number above, the next index below, kUsedUp when
  /// there is none.
  struct alignas(64) Share {
    std::atomic<uint64_t> next{kUsedUp};
  };
  static constexpr uint64_t kUsedUp = UINT32_MAX;

  /// Indices of a chunk.
  struct Cut {
    size_t chunk = 1;
    size_t share = 0;  // of each worker, of which the last ones may be shorter

    Cut(size_t count, size_t threads) {
      chunk = (count + threads * kChunks - 1) / (threads * kChunks);
      share = (count + threads - 1) / threads;
      if (count < kQuantum * kChunks * threads) return;
      chunk = (chunk + kQuantum - 1) / kQuantum * kQuantum;
      share = (share + kQuantum - 1) / kQuantum * kQuantum;
    }
    size_t begin(size_t worker, size_t count) const { return std::min(count, share * worker); }
  };

  void work(size_t worker) {
    pin(worker);
    for (uint32_t seen = 0;;) {
      spin_then_sleep(sleepers, mutex, wake, [&] { return published.load() != seen; });
      seen = published.load();
      if (stop.load()) return;
      finish(help(worker));
    }
  }

  /// Runs chunks until none is left to begin; returns the number of indices done.
  size_t help(size_t worker) {
    size_t done = 0;
    for (size_t i = 0; i < count_threads; ++i) {
      const size_t owner = worker + i < count_threads ? worker + i : worker + i - count_threads;
      while (const size_t size = run_chunk(owner, worker)) done += size;
    }
    return done;
  }

  /// A chunk of the owner's share: its size, or 0 when there was none.
  size_t run_chunk(size_t owner, size_t worker) {
    std::atomic<uint64_t>& next = shares[owner].next;
    uint64_t word = next.load(std::memory_order_acquire);
    while (true) {
      const size_t count = loop.count.load(std::memory_order_relaxed);
      const Body body = loop.body.load(std::memory_order_relaxed);
      void* const context = loop.context.load(std::memory_order_relaxed);
      const Cut cut(count, count_threads);
      const size_t begin = word & kUsedUp;
      const size_t share_end = cut.begin(owner + 1, count);
      if (begin >= share_end) return 0;
      const size_t end = std::min(begin + cut.chunk, share_end);
      const uint64_t after = (word & ~kUsedUp) | (end == share_end ? kUsedUp : end);
      if (!next.compare_exchange_weak(word, after, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        continue;
      body(context, begin, end, worker);
      return end - begin;
    }
  }

  void finish(size_t done) {
    if (done > 0 && left.fetch_sub(done) == done) wake_sleepers(waiting, done_mutex, all_done);
  }

  void begin(size_t count, Body body, void* context) {
    loop.count.store(count, std::memory_order_relaxed);
    loop.body.store(body, std::memory_order_relaxed);
    loop.context.store(context, std::memory_order_relaxed);
    left.store(count);
    const Cut cut(count, count_threads);
    const uint32_t number = published.load() + 1;
    for (size_t w = 0; w < count_threads; ++w) {
      const size_t first = cut.begin(w, count);
      shares[w].next.store(uint64_t{number} << 32 | (first == count ? kUsedUp : first),
                           std::memory_order_release);
    }
    publish();
  }

  void publish() {
    published.fetch_add(1);
    wake_sleepers(sleepers, mutex, wake);
  }

  void pin(size_t worker) const {
    if (!cores.empty()) stay_on_core(cores[worker % cores.size()]);
  }

  const CpuLevel level;
  const size_t count_threads;
  const std::vector<uint32_t> cores;
  bool is_caller_pinned = false;
  std::vector<WorkerBuffer> buffers{count_threads};
  Buffer shared;

  Loop loop;
  std::vector<Share> shares{count_threads};

  alignas(64) std::atomic<uint32_t> published{0};  // number of loops
  std::atomic<bool> stop{false};
  std::atomic<int> sleepers{0};
  std::mutex mutex;
  std::condition_variable wake;

  alignas(64) std::atomic<size_t> left{0};  // indices that are not done
  std::atomic<int> waiting{0};
  std::mutex done_mutex;
  std::condition_variable all_done;

  std::vector<std::thread> workers;
};

WorkerPool::WorkerPool(size_t threads, CpuLevel level, std::vector<uint32_t> cores)
    : state_(std::make_unique<State>(threads, level, std::move(cores))) {
  TANDEM_CHECK(threads >= 1, "a pool needs the caller's thread at least");
  TANDEM_CHECK(can_run(level), "this machine cannot run {} kernels", name(level));
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
  if (!std::exchange(s.is_caller_pinned, true)) s.pin(0);
  if (s.count_threads == 1 || count == 1) return body(context, 0, count, 0);
  TANDEM_CHECK(count <= UINT32_MAX, "a loop of {} is too long", count);
  s.begin(count, body, context);
  s.finish(s.help(0));
  spin_then_sleep(s.waiting, s.done_mutex, s.all_done, [&] { return s.left.load() == 0; });
}

float* WorkerPool::scratch(size_t worker, size_t floats) {
  return state_->buffers[worker].buffer.get(floats);
}

float* WorkerPool::shared_scratch(size_t floats) { return state_->shared.get(floats); }

}  // namespace tandem::kernels
