// The state machine of an instance: its ranks, epochs, faults and requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/instance_options.h"
#include "control/progress_clock.h"
#include "control/request_table.h"
#include "plan/frames.h"

namespace tandem::control {

/// A process of a rank: the how-many-eth one. What an older one still says is ignored.
struct Incarnation {
  uint32_t rank = 0;
  uint64_t number = 0;

  bool operator==(const Incarnation&) const = default;
};

/// Start a process; on_hello, on_exit or on_spawn_failed follows.
struct Spawn {
  Incarnation who;
};
/// End it and its link now (SIGKILL); on_exit follows.
struct Kill {
  Incarnation who;
};
struct Send {
  Incarnation who;
  plan::Frame frame;
};
/// Give a request's owner an event. It was recorded before.
struct Deliver {
  gen::Event event;
};
using Action = std::variant<Spawn, Kill, Send, Deliver>;

/// Pure: driven by events and a clock, answers with actions, and never waits. One thread.
///
/// starting → ready → (fault) reforming → ready …; draining is a flag beside. A fault ends the
/// epoch: the faulty rank is killed, the others drop the epoch (or are killed when they do not say
/// so in time, and at once where MLX's own backends carry tensors), missing ranks are started, all
/// form the next epoch, and the requests resume.
class Instance {
 public:
  Instance(InstanceOptions options, const Clock& clock);

  // ---- what the owner wants ----
  void start();
  /// Accepted: exactly one last event is delivered. Errors: kConflict, kBusy, kUnavailable.
  Status submit(gen::Request request);
  void cancel(gen::RequestId id);
  /// Refuses new requests from now on; running ones go on (also over faults).
  void drain();
  /// Fails what is unfinished and ends every rank.
  void stop();

  // ---- what happens ----
  void on_hello(Incarnation who, const plan::Hello& hello);
  void on_frame(Incarnation who, plan::Frame frame);
  void on_link_closed(Incarnation who, const Error& why);
  void on_exit(Incarnation who, const std::string& how);
  void on_spawn_failed(Incarnation who, const Error& why);
  /// Time passes: call at least four times a beat.
  void tick();

  /// What is to be done, in this order.
  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  InstanceState state() const { return state_; }
  bool is_drained() const { return is_draining_ && requests_.is_empty(); }
  /// Known once it was ready.
  const std::optional<plan::Ready>& shape() const { return shape_; }
  InstanceSnapshot snapshot() const;

 private:
  struct Slot {
    RankState state = RankState::kGone;
    uint64_t number = 0;  // of the incarnation
    bool is_linked = false;
    bool has_loaded = false;  // was ready once
    uint32_t failures = 0;    // processes in a row that ended outside an epoch
    TimePoint since{};        // in this state; a kill is repeated from here
    TimePoint heard_at{};
    TimePoint start_at{};  // a gone one starts then
    plan::Hello hello;
    plan::Beat beat;
    plan::Ready ready;
    plan::Figures figures;
    std::string last_words;  // of the last fault that it reported
  };

  Slot* find(Incarnation who);
  void enter(Slot& slot, RankState state);
  uint32_t rank_of(const Slot& slot) const;
  void send(Slot& slot, plan::Frame frame);
  void deliver(std::vector<gen::Event> events);
  void kill(Slot& slot);

  void on_ready(Slot& slot, const plan::Ready& ready);
  void on_report(plan::Report report);
  void on_fault(Slot& slot, const plan::Fault& fault);
  void on_aborted(Slot& slot, const plan::Aborted& aborted);

  bool is_in_epoch() const;
  void lose_rank(Slot& slot, DeathCause cause, const std::string& why);
  void lose_epoch(EpochEnd end, const std::string& why);
  void drop_epoch(Slot& slot);
  void count_failure(uint32_t count, const std::string& why);
  void give_up(const std::string& why);
  Duration backoff(const Slot& slot) const;
  void advance();
  void form();
  void begin_epoch();
  void pump();
  InstanceFigures figures() const;

  void forgive_own_pause();
  void check_slot(Slot& slot);
  Duration abort_limit() const;
  void check_forming(Slot& slot);
  void check_progress();
  void send_beats();

  const InstanceOptions options_;
  const Clock& clock_;
  RequestTable requests_;
  ProgressClock progress_;
  std::vector<Slot> slots_;
  std::vector<Action> actions_;

  InstanceState state_ = InstanceState::kStarting;
  bool is_started_ = false;
  bool is_forming_ = false;
  bool is_draining_ = false;
  bool has_stalled_ = false;  // an epoch stalled, nobody was found guilty, and no token came since
  uint32_t epoch_ = 0;
  uint32_t barren_ = 0;  // lost epochs in a row without a token
  uint64_t lost_epochs_ = 0;
  uint64_t blamed_ = 0;
  std::array<uint64_t, kDeathCauses> deaths_{};
  std::array<uint64_t, kEpochEnds> ends_{};
  plan::EngineTotals past_;  // of rank 0's processes before the current one
  TimePoint ready_at_{};
  TimePoint beat_at_{};
  TimePoint tick_at_{};
  std::optional<plan::Ready> shape_;
  std::string trouble_;
  std::string loading_;
};

}  // namespace tandem::control
