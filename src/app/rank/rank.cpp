#include "app/rank/rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/rank/leader.h"
#include "app/rank/replica.h"
#include "app/rank/resident.h"
#include "base/log.h"
#include "plan/codec.h"
#include "plan/plan_log.h"

namespace tandem::app {

Rank::Rank(RankConfig config, std::unique_ptr<RankModel> model)
    : config_(std::move(config)), model_(std::move(model)) {}

Rank::~Rank() = default;

RankExit Rank::run() {
  std::optional<RankExit> failed = connect();
  if (!failed) failed = load();
  if (failed) end(*failed);
  RankExit how{};
  {
    std::unique_lock lock(end_mutex_);
    changed_.wait(lock, [this] { return ended_.has_value(); });
    how = *ended_;
  }
  std::unique_ptr<Role> role;
  {
    const std::lock_guard lock(mutex_);
    role = std::move(role_);
  }
  role.reset();  // ends the epoch; the beat thread watches the time
  followers_.reset();
  {
    const std::lock_guard lock(end_mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  if (beats_.joinable()) beats_.join();
  head_.reset();
  return how;
}

std::optional<RankExit> Rank::connect() {
  if (config_.rank == 0) {
    auto made = cluster::FollowerLinks::listen(config_.listen_host + ":0");
    if (!made) {
      TANDEM_LOG(kError, "no listener for plan links: {}", made.error().message);
      return RankExit::kInternal;
    }
    followers_ = *std::move(made);
  }
  auto link =
      net::connect_link(config_.control, {.secret = config_.secret}, config_.connect_timeout);
  if (!link) {
    TANDEM_LOG(kError, "no control link: {}", link.error().message);
    return link.error().code == ErrorCode::kInvalid ? RankExit::kUsage : RankExit::kNoHead;
  }
  head_ = *std::move(link);
  heard_at_ = SteadyClock().now();
  say(plan::Hello{.protocol = plan::kFormatVersion,
                  .build = config_.build,
                  .instance = config_.instance,
                  .rank = config_.rank,
                  .size = config_.size,
                  .pid = static_cast<uint64_t>(::getpid()),
                  .plan_address = followers_ ? followers_->address() : std::string(),
                  .data_address = model_->data_address(),
                  .model_fingerprint = model_->fingerprint(),
                  .memory_bytes = model_->memory_bytes()});
  head_->start({.on_frame = [this](std::span<const std::byte> bytes) { receive(bytes); },
                .on_closed =
                    [this](const Error& why) {
                      if (why.code != ErrorCode::kCancelled) {
                        TANDEM_LOG(kInfo, "the control link ended: {}", why.message);
                      }
                      end(RankExit::kHeadGone);
                    }});
  beats_ = std::thread([this] { beat(); });
  return std::nullopt;
}

std::optional<RankExit> Rank::load() {
  const Status loaded = model_->load([this](const std::string& text, float fraction) {
    say(plan::Loading{.text = text, .fraction = fraction});
  });
  std::optional<plan::PlanLogWriter> log;
  Status good = loaded;
  if (good && !config_.plan_log.empty()) {
    auto made = plan::PlanLogWriter::create(config_.plan_log, model_->fingerprint());
    if (made) {
      log = *std::move(made);
    } else {
      good = made.error();
    }
  }
  if (!good) {
    TANDEM_LOG(kError, "cannot load: {}", good.error().message);
    say(plan::Fault{.epoch = status().epoch, .error = good.error()});
    return RankExit::kLoadFailed;
  }
  const Say to_head = [this](const plan::Frame& frame) { say(frame); };
  std::unique_ptr<Role> role;
  if (config_.rank == 0) {
    role =
        std::make_unique<Leader>(*model_, *followers_, std::move(log), to_head,
                                 schedule::SchedulerOptions{.prefix_reuse = config_.prefix_reuse});
  } else {
    role = std::make_unique<Replica>(*model_, std::move(log), to_head);
  }
  const std::lock_guard lock(mutex_);
  role_ = std::move(role);
  for (plan::Frame& frame : std::exchange(held_, {})) dispatch(*role_, std::move(frame));
  return std::nullopt;
}

void Rank::receive(std::span<const std::byte> bytes) {
  heard_at_ = SteadyClock().now();
  auto frame = plan::decode_frame(bytes);
  if (!frame) {
    TANDEM_LOG(kError, "the head sent what cannot be read: {}", frame.error().message);
    return end(RankExit::kHeadGone);
  }
  if (std::holds_alternative<plan::HeadBeat>(*frame)) return;
  if (std::holds_alternative<plan::Shutdown>(*frame)) return end(RankExit::kDone);
  const std::lock_guard lock(mutex_);
  if (role_) {
    dispatch(*role_, *std::move(frame));
  } else {
    hold(*std::move(frame));
  }
}

// A group that is given up before the model was loaded is never joined.
void Rank::hold(plan::Frame frame) {
  if (const auto* abort = std::get_if<plan::Abort>(&frame)) {
    std::erase_if(held_,
                  [](const plan::Frame& f) { return !std::holds_alternative<plan::Drain>(f); });
    return say(plan::Aborted{.epoch = abort->epoch});
  }
  held_.push_back(std::move(frame));
}

void Rank::dispatch(Role& role, plan::Frame frame) {
  if (const auto* form = std::get_if<plan::Form>(&frame)) {
    const Status fits = check(*form);
    if (fits) return role.form(*form);
    return say(plan::Fault{.epoch = form->epoch, .error = fits.error()});
  }
  if (const auto* abort = std::get_if<plan::Abort>(&frame)) return role.abort(abort->epoch);
  if (auto* submit = std::get_if<plan::Submit>(&frame)) return role.submit(std::move(*submit));
  if (const auto* cancel = std::get_if<plan::Cancel>(&frame)) return role.cancel(*cancel);
  if (std::holds_alternative<plan::Drain>(frame)) return role.drain();
  TANDEM_LOG(kWarn, "the head sent {}, which is not for a rank", plan::name(frame));
}

Status Rank::check(const plan::Form& form) const {
  if (form.rank == config_.rank && form.size == config_.size) return {};
  return Error{ErrorCode::kInvalid,
               fmt::format("started as rank {} of {}, told to form as rank {} of {}", config_.rank,
                           config_.size, form.rank, form.size)};
}

void Rank::say(const plan::Frame& frame) {
  const Status sent = head_->send(plan::encode(frame));
  if (sent || sent.error().code == ErrorCode::kPeerLost) return;  // its end is reported elsewhere
  // An event that cannot be sent would be lost: better to end and be resumed.
  TANDEM_LOG(kError, "cannot send {}: {}", plan::name(frame), sent.error().message);
  end(RankExit::kHeadGone);
}

void Rank::end(RankExit how) {
  const std::lock_guard lock(end_mutex_);
  if (!ended_) ended_ = how;
  changed_.notify_all();
}

plan::Beat Rank::status() {
  const std::lock_guard lock(mutex_);
  if (role_) return role_->beat();
  for (const plan::Frame& frame : held_) {
    if (const auto* form = std::get_if<plan::Form>(&frame)) return {.epoch = form->epoch};
  }
  return {};
}

plan::Figures Rank::figures() {
  plan::Figures result;
  {
    const std::lock_guard lock(mutex_);
    if (role_) {
      result.memory = model_->memory();
      result.engine = role_->figures();
    }
  }
  result.memory.resident_bytes = resident_bytes();
  return result;
}

void Rank::beat() {
  TimePoint woke = SteadyClock().now();
  for (;;) {
    say(status());
    say(figures());
    std::unique_lock lock(end_mutex_);
    changed_.wait_for(lock, config_.beat_interval, [this] { return ended_.has_value(); });
    if (ended_) break;
    lock.unlock();
    const TimePoint now = SteadyClock().now();
    // After a pause of this process itself, the head gets its time again.
    if (now - woke > 2 * config_.beat_interval) heard_at_ = now;
    woke = now;
    if (now - heard_at_.load() < config_.head_timeout) continue;
    TANDEM_LOG(kError, "the head has been silent for {} ms", config_.head_timeout.count());
    end(RankExit::kHeadGone);
  }
  std::unique_lock lock(end_mutex_);
  const RankExit how = *ended_;
  const bool over = changed_.wait_for(lock, config_.end_timeout, [this] { return is_over_; });
  lock.unlock();
  if (over) return;
  TANDEM_LOG(kError, "the rank does not end by itself");
  if (config_.give_up) config_.give_up(how == RankExit::kDone ? RankExit::kStuck : how);
}

}  // namespace tandem::app
