// Sleeping on a word in memory that processes share: futex on Linux, os_sync on macOS.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tandem::comm {

static_assert(std::atomic<uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `seen`, at most `longest`. May wake early.
void wait_word(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::milliseconds longest);

/// Wakes everyone who sleeps on `word`, in every process.
void wake_word(std::atomic<uint32_t>& word);

/// Cores this process may run on.
uint32_t usable_cores();

}  // namespace tandem::comm
