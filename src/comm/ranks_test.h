// Runs the ranks of a group as processes, or as threads of this one, for the tests of this folder.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "comm/socket.h"
#include "comm/transport.h"

namespace tandem::comm {

inline constexpr Kind kKinds[] = {Kind::kSharedMemory, Kind::kTcp};

inline const char* name(Kind kind) { return kind == Kind::kTcp ? "tcp" : "shared memory"; }

/// What ranks need to find each other, made before they start. Each one is another group.
class Meetup {
 public:
  Meetup(Kind kind, uint32_t size, uint32_t epoch = 1) : kind_(kind), size_(size), epoch_(epoch) {
    static int count = 0;
    name_ = "comm_test." + std::to_string(getpid()) + "." + std::to_string(count++);
    for (uint32_t rank = 0; kind == Kind::kTcp && rank < size; ++rank) {
      listeners_.push_back(*listen_on(*tcp_address("127.0.0.1:0")));
      addresses_.push_back("127.0.0.1:" + std::to_string(local_port(listeners_.back())));
    }
  }

  /// Takes the rank's listening socket with it: once a rank.
  Options options(uint32_t rank) {
    return {.kind = kind_,
            .rank = rank,
            .size = size_,
            .epoch = epoch_,
            .name = name_,
            .addresses = addresses_,
            .listen_fd = kind_ == Kind::kTcp ? dup(listeners_[rank].get()) : -1,
            .secret = std::vector<std::byte>(32, std::byte{42})};
  }

  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& name() const { return name_; }

 private:
  Kind kind_;
  uint32_t size_;
  uint32_t epoch_;
  std::string name_;
  std::vector<Fd> listeners_;
  std::vector<std::string> addresses_;
};

/// Memory that forked ranks share with the test.
template <class T>
class Board {
 public:
  Board()
      : value_(new (mmap(
            nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T()) {}
  ~Board() { munmap(value_, sizeof(T)); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_;
};

/// Ranks as processes. A rank's function returns what went wrong, or nothing.
class Ranks {
 public:
  using Body = std::function<std::string(uint32_t rank)>;

  Ranks(uint32_t size, const Body& body) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) std::abort();
      std::cout.flush();  // or each rank would print it again
      std::fflush(stdout);
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(60);
        const std::string result = body(rank);
        if (write(ends[1], result.data(), result.size()) < 0) _exit(2);
        _exit(0);
      }
      close(ends[1]);
      pids_.push_back(pid);
      results_.emplace_back(ends[0]);
    }
  }

  pid_t pid(uint32_t rank) const { return pids_[rank]; }
  void signal(uint32_t rank, int number) const { kill(pids_[rank], number); }

  /// Waits for the rank: what it returned, or how it died.
  std::string result(uint32_t rank) {
    std::string text;
    std::array<char, 512> part;
    ssize_t got = 0;
    while ((got = read(results_[rank].get(), part.data(), part.size())) > 0) {
      text.append(part.data(), static_cast<size_t>(got));
    }
    int state = 0;
    waitpid(pids_[rank], &state, 0);
    if (WIFSIGNALED(state)) return "signal " + std::to_string(WTERMSIG(state));
    return WEXITSTATUS(state) == 0 ? text : "exit " + std::to_string(WEXITSTATUS(state));
  }

  /// All results, with a bar between them.
  std::string results();

 private:
  std::vector<pid_t> pids_;
  std::vector<Fd> results_;
};

inline std::string joined(const std::vector<std::string>& results) {
  std::string all;
  for (const std::string& result : results) all += (all.empty() ? "" : "|") + result;
  return all;
}

inline std::string Ranks::results() {
  std::vector<std::string> all;
  for (uint32_t rank = 0; rank < pids_.size(); ++rank) all.push_back(result(rank));
  return joined(all);
}

/// Runs each rank as a thread and returns what each returned.
inline std::vector<std::string> on_threads(uint32_t size, const Ranks::Body& body) {
  std::vector<std::string> results(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { results[rank] = body(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// A rank's result when nothing went wrong. Not empty, so that a rank that never ran shows.
inline const std::string kFine = "fine";

/// `size` times the same.
inline std::string each(uint32_t size, const std::string& result) {
  return joined(std::vector<std::string>(size, result));
}

}  // namespace tandem::comm
