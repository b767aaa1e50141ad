// A child process that cannot outlive its owner, leaves no zombie and says how it ended.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace tandem::control {

/// How a process ended: an exit code, or the signal that ended it.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it exited by itself

  bool operator==(const ExitStatus&) const = default;
};

/// "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe(ExitStatus status);

struct ProcessOptions {
  std::string program = {};                 // path, not searched
  std::vector<std::string> arguments = {};  // without argv[0]
  std::vector<std::byte> secret = {};       // readable by the child at kSecretFd, then end of file
  std::string output_path = {};             // stdout and stderr are appended here; empty: inherited
};

/// One child, in a process group of its own, which the kernel kills when this process ends (Linux).
/// It inherits no descriptor but 0, 1, 2 and kSecretFd. A thread of the object forks it and waits
/// for it. Thread-safe.
class Process {
 public:
  static constexpr int kSecretFd = 3;
  static constexpr size_t kMaxSecretBytes = 4096;  // fits a pipe without blocking

  /// Called once, on the object's thread, when the child has ended and was reaped.
  using OnExit = std::function<void(ExitStatus)>;

  /// Errors: kIo with the program and the system's reason, kInvalid for an oversized secret.
  static Result<std::unique_ptr<Process>> spawn(ProcessOptions options, OnExit on_exit = {});

  /// Kills the group, waits for the child and for on_exit. Never call it on the object's thread.
  ~Process();

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  /// Sends a signal to the child's group; nothing happens once the child was reaped.
  void kill(int signal);

  /// True when the child ended within the time.
  bool wait_for(Duration time);

 private:
  Process() = default;
  void own_child(const ProcessOptions& options);
  void reap();

  OnExit on_exit_;
  pid_t pid_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  Status started_;        // guarded by mutex_
  bool is_up_ = false;    // guarded: the outcome of the start is known
  bool is_over_ = false;  // guarded: reaped, the pid may belong to someone else

  std::thread thread_;
};

}  // namespace tandem::control
