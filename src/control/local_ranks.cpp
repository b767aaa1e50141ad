#include "control/local_ranks.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "base/temporary_file.h"

namespace tandem::control {

std::vector<std::string> mpirun_arguments(const std::string& program,
                                          const std::vector<std::vector<std::string>>& ranks) {
  std::vector<std::string> result{"--oversubscribe", "--bind-to", "none", "--stdin", "none"};
  if (::geteuid() == 0) result.emplace_back("--allow-run-as-root");
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank > 0) result.emplace_back(":");
    result.insert(result.end(), {"-n", "1", program});
    result.insert(result.end(), ranks[rank].begin(), ranks[rank].end());
  }
  return result;
}

LocalRanks::LocalRanks(LocalRanksOptions options, OnExit on_exit)
    : options_(std::move(options)), on_exit_(std::move(on_exit)) {}

Status LocalRanks::spawn(Incarnation who) {
  if (!options_.mpirun.empty()) return spawn_together(who);
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

Status LocalRanks::spawn_together(Incarnation who) {
  waiting_[who.rank] = who.number;
  if (waiting_.size() < options_.ranks) return {};
  auto waiting = std::exchange(waiting_, {});
  auto started = start(waiting);
  if (!started) {
    waiting.erase(who.rank);  // the caller tells of this one
    report(waiting, "could not be started");
    return started.error();
  }
  const std::shared_ptr<Process> shared = std::move(*started);
  for (const auto& [rank, number] : waiting) running_[rank] = {.number = number, .process = shared};
  return {};
}

Result<std::unique_ptr<Process>> LocalRanks::start(const Numbers& ranks) const {
  auto written = TemporaryFile::write(options_.secret);  // mpirun passes no descriptors on
  if (!written) return written.error();
  const auto secret = std::make_shared<TemporaryFile>(std::move(*written));
  std::vector<std::vector<std::string>> commands;
  for (const auto& [rank, number] : ranks) {
    commands.push_back(options_.arguments(rank));
    commands.back().insert(commands.back().end(), {"--secret-file", secret->path()});
  }
  ProcessOptions process{.program = options_.mpirun,
                         .arguments = mpirun_arguments(options_.program, commands),
                         .output_path = options_.output_path};
  return Process::spawn(std::move(process), [this, ranks, secret](ExitStatus status) {
    report(ranks, describe(status));
  });
}

void LocalRanks::report(const Numbers& ranks, const std::string& how) const {
  for (const auto& [rank, number] : ranks) on_exit_({.rank = rank, .number = number}, how);
}

void LocalRanks::kill(Incarnation who) {
  const auto waits = waiting_.find(who.rank);
  if (waits != waiting_.end() && waits->second == who.number) {
    waiting_.erase(waits);
    return on_exit_(who, "was not started");
  }
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
  const bool is_child = static_cast<uint64_t>(it->second.process->pid()) == pid;
  if (!is_child && options_.mpirun.empty()) return std::nullopt;
  return Incarnation{.rank = rank, .number = it->second.number};
}

}  // namespace tandem::control
