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
  std::string mpirun = {};  // path of Open MPI's: starts all ranks in one go; empty: one by one
  uint32_t ranks = 1;       // with mpirun
};

/// The arguments of an mpirun that starts each rank's command on this machine, in rank order.
std::vector<std::string> mpirun_arguments(const std::string& program,
                                          const std::vector<std::vector<std::string>>& ranks);

/// One thread calls everything; destruction kills and reaps what is left.
class LocalRanks {
 public:
  /// On a thread of its own for a process that ended; within spawn() or kill() for a rank that
  /// never ran. Must not block, nor call back.
  using OnExit = std::function<void(Incarnation, std::string how)>;

  LocalRanks(LocalRanksOptions options, OnExit on_exit);

  /// With mpirun, starts nothing until all ranks are to start; when that fails, the others are
  /// reported as ended. Errors: kIo.
  Status spawn(Incarnation who);

  /// SIGKILL; under mpirun it ends all ranks. Unknown ones are ignored.
  void kill(Incarnation who);

  /// Call when the exit was seen.
  void forget(Incarnation who);

  /// The process with this id, if it runs as this rank. Under mpirun the id is taken on trust: the
  /// rank has shown the secret.
  std::optional<Incarnation> find(uint32_t rank, uint64_t pid) const;

 private:
  struct Running {
    uint64_t number = 0;
    std::shared_ptr<Process> process;  // of all ranks under mpirun
  };

  using Numbers = std::map<uint32_t, uint64_t>;  // of incarnations, by rank

  Status spawn_together(Incarnation who);
  Result<std::unique_ptr<Process>> start(const Numbers& ranks) const;
  void report(const Numbers& ranks, const std::string& how) const;

  const LocalRanksOptions options_;
  const OnExit on_exit_;
  std::map<uint32_t, Running> running_;  // by rank
  Numbers waiting_;                      // for mpirun
};

}  // namespace tandem::control
