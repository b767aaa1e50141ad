#include "control/local_ranks.h"

#include <signal.h>

#include <utility>

namespace tandem::control {

LocalRanks::LocalRanks(LocalRanksOptions options, OnExit on_exit)
    : options_(std::move(options)), on_exit_(std::move(on_exit)) {}

Status LocalRanks::spawn(Incarnation who) {
  ProcessOptions process{.program = options_.program,
                         .arguments = options_.arguments(who.rank),
                         .secret = options_.secret,
                         .output_path = options_.output_path};
  auto spawned = Process::spawn(
      std::move(process), [this, who](ExitStatus status) { on_exit_(who, describe(status)); });
  if (!spawned) return spawned.error();
  running_[who.rank] = {.number = who.number, .process = std::move(*spawned)};
  return {};
}

void LocalRanks::kill(Incarnation who) {
  const auto it = running_.find(who.rank);
  if (it != running_.end() && it->second.number == who.number) it->second.process->kill(SIGKILL);
}

void LocalRanks::forget(Incarnation who) {
  const auto it = running_.find(who.rank);
  if (it != running_.end() && it->second.number == who.number) running_.erase(it);
}

std::optional<Incarnation> LocalRanks::find(uint32_t rank, uint64_t pid) const {
  const auto it = running_.find(rank);
  if (it == running_.end()) return std::nullopt;
  if (static_cast<uint64_t>(it->second.process->pid()) != pid) return std::nullopt;
  return Incarnation{.rank = rank, .number = it->second.number};
}

}  // namespace tandem::control
