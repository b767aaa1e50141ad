// The agent of this machine: starts and ends the rank processes of an instance.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/instance.h"
#include "control/process.h"

namespace tandem::control {

struct LocalRanksOptions {
  std::string program;                                          // path of tandem-rank
  std::function<std::vector<std::string>(uint32_t)> arguments;  // of a rank
  std::vector<std::byte> secret;                                // for the rank's control link
  std::string output_path;                                      // log file; empty: inherited
};

/// One thread calls everything; destruction kills and reaps what is left.
class LocalRanks {
 public:
  /// On a thread of its own; must not block.
  using OnExit = std::function<void(Incarnation, std::string how)>;

  LocalRanks(LocalRanksOptions options, OnExit on_exit);

  /// Errors: kIo.
  Status spawn(Incarnation who);

  /// SIGKILL. Unknown ones are ignored.
  void kill(Incarnation who);

  /// Call when the exit was seen.
  void forget(Incarnation who);

  /// The process with this id, if it runs as this rank.
  std::optional<Incarnation> find(uint32_t rank, uint64_t pid) const;

 private:
  struct Running {
    uint64_t number = 0;
    std::unique_ptr<Process> process;
  };

  const LocalRanksOptions options_;
  const OnExit on_exit_;
  std::map<uint32_t, Running> running_;  // by rank
};

}  // namespace tandem::control
