// What ranks say and what time brings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "control/instance.h"

namespace tandem::control {
namespace {

/// Whether the same files and options must fail the same way again.
bool is_lasting(ErrorCode code) {
  return code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ||
         code == ErrorCode::kUnsupported || code == ErrorCode::kCorrupt ||
         code == ErrorCode::kTooLarge;
}

}  // namespace

const char* name(InstanceState state) {
  switch (state) {
    case InstanceState::kStarting:
      return "starting";
    case InstanceState::kReforming:
      return "reforming";
    case InstanceState::kReady:
      return "ready";
    case InstanceState::kStopping:
      return "stopping";
    case InstanceState::kStopped:
      return "stopped";
    case InstanceState::kFailed:
      return "failed";
  }
  return "unknown";
}

const char* name(RankState state) {
  switch (state) {
    case RankState::kGone:
      return "gone";
    case RankState::kSpawned:
      return "spawned";
    case RankState::kIdle:
      return "idle";
    case RankState::kForming:
      return "forming";
    case RankState::kReady:
      return "ready";
    case RankState::kAborting:
      return "aborting";
    case RankState::kEnding:
      return "ending";
  }
  return "unknown";
}

const char* name(DeathCause cause) {
  constexpr std::array<const char*, kDeathCauses> kNames = {"exit",  "link",  "silence",
                                                            "stuck", "start", "protocol"};
  return kNames[static_cast<size_t>(cause)];
}

const char* name(EpochEnd end) {
  constexpr std::array<const char*, kEpochEnds> kNames = {"rank_lost", "fault", "stall"};
  return kNames[static_cast<size_t>(end)];
}

void Instance::on_hello(Incarnation who, const plan::Hello& hello) {
  Slot* slot = find(who);
  if (slot == nullptr || slot->state != RankState::kSpawned) return;
  slot->is_linked = true;
  slot->hello = hello;
  slot->heard_at = clock_.now();
  enter(*slot, RankState::kIdle);
  const auto other_weights = [&](const plan::Hello& other) {
    const bool both_have = !other.model_fingerprint.empty() && !hello.model_fingerprint.empty();
    return both_have && other.model_fingerprint != hello.model_fingerprint;
  };
  const auto differs = [&](const Slot& other) {
    return other.is_linked && (other.hello.build != hello.build || other_weights(other.hello));
  };
  const auto other = std::find_if(slots_.begin(), slots_.end(), differs);
  if (other != slots_.end()) {
    return give_up(fmt::format("rank {} and rank {} have different builds or weights: {} {}, {} {}",
                               rank_of(*other), who.rank, other->hello.build,
                               other->hello.model_fingerprint, hello.build,
                               hello.model_fingerprint));
  }
  advance();
}

void Instance::on_frame(Incarnation who, plan::Frame frame) {
  Slot* slot = find(who);
  if (slot == nullptr || !slot->is_linked) return;
  slot->heard_at = clock_.now();
  if (slot->state == RankState::kEnding) return;
  if (auto* beat = std::get_if<plan::Beat>(&frame)) {
    slot->beat = *beat;
    if (state_ == InstanceState::kReady && beat->epoch == epoch_) {
      progress_.beat(who.rank, beat->steps, beat->predicted_step, clock_.now());
    }
  } else if (auto* ready = std::get_if<plan::Ready>(&frame)) {
    on_ready(*slot, *ready);
  } else if (auto* report = std::get_if<plan::Report>(&frame)) {
    if (who.rank == 0) on_report(std::move(*report));
  } else if (auto* refused = std::get_if<plan::Refused>(&frame)) {
    if (who.rank != 0 || state_ != InstanceState::kReady || refused->epoch != epoch_) return;
    auto ended = requests_.refuse(refused->request, refused->error, clock_.now());
    if (ended) actions_.push_back(Deliver{std::move(*ended)});
    pump();
  } else if (auto* fault = std::get_if<plan::Fault>(&frame)) {
    on_fault(*slot, *fault);
  } else if (auto* aborted = std::get_if<plan::Aborted>(&frame)) {
    on_aborted(*slot, *aborted);
  } else if (auto* figures = std::get_if<plan::Figures>(&frame)) {
    slot->figures = std::move(*figures);
  } else if (auto* loading = std::get_if<plan::Loading>(&frame)) {
    loading_ = fmt::format("rank {}: {} ({:.0f} %)", who.rank, loading->text,
                           static_cast<double>(loading->fraction) * 100);
  } else if (!std::holds_alternative<plan::Drained>(frame)) {
    lose_rank(*slot, DeathCause::kProtocol,
              fmt::format("sent an unexpected {} frame", plan::name(frame)));
    advance();
  }
}

void Instance::on_ready(Slot& slot, const plan::Ready& ready) {
  if (slot.state != RankState::kForming || ready.epoch != epoch_) return;
  slot.ready = ready;
  enter(slot, RankState::kReady);
  for (const Slot& other : slots_) {
    const bool agrees = other.ready.limits == ready.limits && other.ready.pages == ready.pages &&
                        other.ready.page_tokens == ready.page_tokens;
    if (other.state != RankState::kReady || agrees) continue;
    return give_up(fmt::format(
        "rank {} has {} pages of {} tokens, a vocabulary of {} and a context of {}; rank {} has "
        "{}, {}, {}, {}",
        rank_of(slot), ready.pages, ready.page_tokens, ready.limits.vocab, ready.limits.max_context,
        rank_of(other), other.ready.pages, other.ready.page_tokens, other.ready.limits.vocab,
        other.ready.limits.max_context));
  }
  advance();
}

void Instance::on_report(plan::Report report) {
  if (state_ != InstanceState::kReady || report.epoch != epoch_) return;
  progress_.report(clock_.now());
  for (gen::Event& event : report.events) {
    const bool has_tokens = std::holds_alternative<gen::Tokens>(event.body);
    auto visible = requests_.record(std::move(event), clock_.now());
    if (!visible) continue;
    if (has_tokens) {
      barren_ = 0;
      has_stalled_ = false;
    }
    actions_.push_back(Deliver{std::move(*visible)});
  }
  pump();
}

// A fault without a dead rank (a lost data link, a wrong state hash) costs the epoch, but no
// process. A rank that cannot load its part says why; when trying again cannot help, nobody waits
// for it.
void Instance::on_fault(Slot& slot, const plan::Fault& fault) {
  if (state_ == InstanceState::kStarting && !slot.has_loaded && is_lasting(fault.error.code)) {
    return give_up(fmt::format("rank {} cannot start: {}", rank_of(slot), fault.error.message));
  }
  slot.last_words = fault.error.message;
  const bool is_of_epoch = slot.state == RankState::kForming || slot.state == RankState::kReady;
  if (!is_of_epoch || fault.epoch != epoch_) return;
  lose_epoch(EpochEnd::kFault,
             fmt::format("rank {} reports: {}", rank_of(slot), fault.error.message));
  advance();
}

void Instance::on_aborted(Slot& slot, const plan::Aborted& aborted) {
  if (slot.state != RankState::kAborting || aborted.epoch != epoch_) return;
  enter(slot, RankState::kIdle);
  advance();
}

void Instance::on_link_closed(Incarnation who, const Error& why) {
  Slot* slot = find(who);
  if (slot == nullptr || !slot->is_linked) return;
  slot->is_linked = false;
  if (slot->state != RankState::kEnding) {
    lose_rank(*slot, DeathCause::kLink, fmt::format("closed its control link ({})", why.message));
  }
  advance();
}

void Instance::on_exit(Incarnation who, const std::string& how) {
  Slot* slot = find(who);
  if (slot == nullptr || slot->state == RankState::kGone) return;
  if (slot->state == RankState::kEnding) {
    TANDEM_LOG(kInfo, "instance {}: rank {} {}", options_.name, who.rank, how);
    slot->is_linked = false;
    enter(*slot, RankState::kGone);
  } else {
    const bool said_why = !slot->has_loaded && !slot->last_words.empty();
    lose_rank(*slot, DeathCause::kExit,
              said_why ? fmt::format("{}: {}", how, slot->last_words) : how);
  }
  slot->start_at = clock_.now() + backoff(*slot);
  advance();
}

void Instance::on_spawn_failed(Incarnation who, const Error& why) {
  on_exit(who, "could not be started: " + why.message);
}

void Instance::tick() {
  if (!is_started_) return;
  forgive_own_pause();
  for (Slot& slot : slots_) check_slot(slot);
  if (state_ == InstanceState::kReady) check_progress();
  deliver(requests_.expire(clock_.now(), state_ == InstanceState::kReady));
  send_beats();
  pump();
  advance();
}

// Time in which this process did not run (stopped, starved, asleep) is held against nobody.
void Instance::forgive_own_pause() {
  const Duration gap = clock_.now() - std::exchange(tick_at_, clock_.now());
  if (gap <= options_.beat_interval) return;
  TANDEM_LOG(kWarn, "instance {}: the head did not run for {} ms", options_.name,
             std::chrono::duration_cast<std::chrono::milliseconds>(gap).count());
  for (Slot& slot : slots_) {
    slot.heard_at += gap;
    slot.since += gap;
  }
}

void Instance::check_slot(Slot& slot) {
  const Duration age = clock_.now() - slot.since;
  switch (slot.state) {
    case RankState::kGone:
      return;
    case RankState::kSpawned:
      if (age > options_.hello_timeout) {
        lose_rank(slot, DeathCause::kStart, "did not say hello in time");
      }
      return;
    case RankState::kEnding: {
      const bool was_asked = slot.is_linked;
      if (age > (was_asked ? options_.stop_timeout : options_.kill_timeout)) kill(slot);
      return;
    }
    case RankState::kAborting:
      if (age > abort_limit()) {
        has_stalled_ = false;  // here is the one that was stuck
        return lose_rank(slot, DeathCause::kStuck, "did not drop the lost epoch in time");
      }
      break;
    case RankState::kForming:
      check_forming(slot);
      break;
    case RankState::kIdle:
    case RankState::kReady:
      break;
  }
  const bool is_watched = slot.state != RankState::kEnding;
  if (is_watched && clock_.now() - slot.heard_at > options_.beat_interval * options_.beats_missed) {
    lose_rank(slot, DeathCause::kSilence,
              fmt::format("fell silent for {} beats", options_.beats_missed));
  }
}

// A step that is under way when another rank dies is no reason to reload a model.
Duration Instance::abort_limit() const {
  const Duration two_steps = std::min(2 * progress_.predicted_step(), options_.longest_abort);
  return std::max(options_.abort_timeout, two_steps);
}

// All were told at once; those that are not ready in time are the ones that hold it up.
void Instance::check_forming(Slot& slot) {
  const bool is_fresh = std::any_of(slots_.begin(), slots_.end(),
                                    [](const Slot& other) { return !other.has_loaded; });
  const Duration grace = 2 * options_.beat_interval;  // ranks give up first, and say why
  const Duration limit = (is_fresh ? options_.load_timeout : options_.form_timeout) + grace;
  if (clock_.now() - slot.since > limit) {
    lose_rank(slot, DeathCause::kStart, "did not join the group in time");
  }
}

// Whoever is stuck does not answer Abort in time and is killed for that. When all answered the last
// time and it still stands, all are replaced.
void Instance::check_progress() {
  if (requests_.with_engine() == 0) return progress_.idle(clock_.now());
  if (!progress_.is_stalled(clock_.now())) return;
  const bool again = std::exchange(has_stalled_, true);
  lose_epoch(EpochEnd::kStall,
             "no step was made or nothing delivered for too long, with requests in flight");
  if (!again) return;
  for (Slot& slot : slots_) {
    if (slot.state == RankState::kAborting || slot.state == RankState::kIdle) {
      ++deaths_[static_cast<size_t>(DeathCause::kStuck)];
      kill(slot);
    }
  }
}

void Instance::send_beats() {
  if (clock_.now() < beat_at_) return;
  beat_at_ = clock_.now() + options_.beat_interval;
  for (Slot& slot : slots_) send(slot, plan::HeadBeat{});
}

}  // namespace tandem::control
