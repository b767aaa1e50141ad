// What an instance is made of, and how patient it is.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "control/progress_clock.h"
#include "control/request_table.h"
#include "plan/frames.h"

namespace tandem::control {

struct InstanceOptions {
  std::string name = {};  // as the ranks say it in Hello
  uint32_t ranks = 1;
  plan::CommKind comm = plan::CommKind::kSharedMemory;
  std::string meeting_prefix = {};                // of the name under which an epoch's ranks meet
  std::function<plan::Bytes()> make_secret = {};  // for the links of an epoch
  size_t max_requests = 1024;                     // unfinished ones; more are refused
  size_t max_waiting = 256;                       // taken while no engine is ready
  RequestTableOptions requests = {};
  ProgressOptions progress = {};

  Duration beat_interval = std::chrono::seconds(1);
  uint32_t beats_missed = 3;                          // in a row: the rank is dead
  Duration hello_timeout = std::chrono::seconds(60);  // from the start of a process
  Duration load_timeout = std::chrono::seconds(900);  // forming, when a rank must load first
  Duration form_timeout = std::chrono::seconds(15);   // forming, when all have loaded
  Duration abort_timeout = std::chrono::seconds(1);   // or twice the predicted step, up to
  Duration longest_abort = std::chrono::seconds(10);  // this
  Duration stop_timeout = std::chrono::seconds(2);    // from Shutdown to a kill
  Duration kill_timeout = std::chrono::seconds(5);    // a kill without an end is repeated

  /// Crash loops. A lost epoch is barren when it delivered no token. The first restart is at once,
  /// later ones wait twice as long each time; an epoch that stays up for barren_window clears the
  /// count.
  uint32_t barren_allowed = 8;
  uint32_t failed_starts_allowed = 3;  // before the first epoch was ready
  Duration first_backoff = std::chrono::milliseconds(100);
  Duration longest_backoff = std::chrono::seconds(5);
  Duration barren_window = std::chrono::seconds(30);
};

enum class InstanceState : uint8_t {
  kStarting,   // never ready so far
  kReforming,  // after a fault: aborting, restarting ranks, forming
  kReady,
  kStopping,
  kStopped,
  kFailed,  // gave up
};

/// "starting", "reforming", "ready", …
const char* name(InstanceState state);

enum class RankState : uint8_t {
  kGone,      // no process
  kSpawned,   // a process, which has not said Hello
  kIdle,      // waits for Form
  kForming,   // was told to form
  kReady,     // joined the epoch
  kAborting,  // was told to drop the epoch
  kEnding,    // was killed or told to exit
};

/// "gone", "spawned", "idle", …
const char* name(RankState state);

/// Why a rank was lost.
enum class DeathCause : uint8_t {
  kExit,      // its process ended, by itself or by a signal
  kLink,      // its control link closed
  kSilence,   // no beat came
  kStuck,     // it did not drop an epoch in time, or all stood still again
  kStart,     // it did not say Hello, or did not join its group in time
  kProtocol,  // it said what no rank may say
};
inline constexpr size_t kDeathCauses = 6;

/// "exit", "link", "silence", "stuck", "start", "protocol".
const char* name(DeathCause cause);

/// Why an epoch was lost.
enum class EpochEnd : uint8_t {
  kRankLost,
  kFault,  // a rank reported that it cannot go on: a lost data link, a wrong state hash, …
  kStall,  // no step was made, or nothing delivered, for too long
};
inline constexpr size_t kEpochEnds = 3;

/// "rank_lost", "fault", "stall".
const char* name(EpochEnd end);

/// What observers see of a rank.
struct RankSnapshot {
  uint32_t rank = 0;
  RankState state = RankState::kGone;
  uint64_t pid = 0;           // 0: none
  uint64_t device_bytes = 0;  // of its device, all of it
  plan::Memory memory = {};   // what it holds, as of about a second ago
  uint64_t steps = 0;
  uint64_t starts = 0;  // processes started for this rank so far
};

/// What an instance has counted since it was made. What an engine said in its last second before
/// its process died is not in it.
struct InstanceFigures {
  plan::EngineFigures engine = {};  // totals over all processes of rank 0; pages of the current one
  std::array<uint64_t, kDeathCauses> deaths = {};
  std::array<uint64_t, kEpochEnds> lost_epochs = {};
  uint64_t resumed_requests = 0;
  uint64_t blamed_requests = 0;  // failed because they ran at too many deaths
  Histogram token_gaps{token_times()};
};

/// What observers see of an instance.
struct InstanceSnapshot {
  std::string name;
  InstanceState state = InstanceState::kStarting;
  uint32_t epoch = 0;
  bool is_draining = false;
  /// Ready, and nothing in flight is without a delivered token or chunk for too long.
  bool is_healthy = false;
  std::string trouble;  // the last fault or the reason for giving up; empty: none so far
  std::string loading;  // what ranks say while they load
  uint64_t lost_epochs = 0;
  uint32_t page_tokens = 0;  // 0 before it was ready
  std::vector<RankSnapshot> ranks = {};
  InstanceFigures figures = {};
};

}  // namespace tandem::control
