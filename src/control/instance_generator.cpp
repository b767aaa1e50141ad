#include "control/instance_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/secret.h"
#include "gen/check_index_reuse.h"

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kSubmitTimeout = 5s;  // the loop never blocks: this is for a defect
constexpr Duration kSnapshotTimeout = 1s;
constexpr Duration kStopTimeout = 15s;

/// A submission under way between the caller and the loop.
struct Handover {
  std::mutex mutex;
  bool is_abandoned = false;  // the caller gave up: the loop must not accept it any more
  Status status;
};

InstanceGeneratorOptions with_secrets(InstanceGeneratorOptions options) {
  if (!options.instance.make_secret) options.instance.make_secret = random_secret;
  return options;
}

}  // namespace

Result<std::unique_ptr<InstanceGenerator>> InstanceGenerator::start(
    InstanceGeneratorOptions options) {
  std::unique_ptr<InstanceGenerator> generator(new InstanceGenerator(std::move(options)));
  if (Status opened = generator->open(); !opened) return opened.error();
  return generator;
}

InstanceGenerator::InstanceGenerator(InstanceGeneratorOptions options)
    : options_(with_secrets(std::move(options))),
      instance_(options_.instance, clock_),
      loop_(kTick, [this] { tick(); }) {}

InstanceGenerator::~InstanceGenerator() { stop(); }

Status InstanceGenerator::open() {
  const plan::Bytes secret = options_.instance.make_secret();
  auto links = RankLinks::listen(
      options_.listen, secret,
      {.on_frame =
           [this](LinkId id, plan::Frame frame) {
             loop_.post([this, id, frame = std::move(frame)]() mutable {
               on_link_frame(id, std::move(frame));
             });
           },
       .on_closed =
           [this](LinkId id, Error why) {
             loop_.post([this, id, why = std::move(why)] { on_link_closed(id, why); });
           }});
  if (!links) return links.error();
  links_ = std::move(*links);
  ranks_ = std::make_unique<LocalRanks>(
      LocalRanksOptions{
          .program = options_.program,
          .arguments =
              [this](uint32_t rank) { return options_.arguments(rank, links_->address()); },
          .secret = secret,
          .output_path = options_.output_path,
          .mpirun = options_.mpirun,
          .ranks = options_.instance.ranks},
      [this](Incarnation who, std::string how) {
        loop_.post([this, who, how = std::move(how)] {
          departures_.exited(who, how, link_to(who).has_value(), clock_.now());
          settle_departures();
        });
      });
  loop_.post([this] {
    instance_.start();
    perform();
  });
  loop_.start();
  return {};
}

Status InstanceGenerator::submit(gen::Request request, gen::Sink sink) {
  if (Status fits = check(request); !fits) return fits;
  const auto handover = std::make_shared<Handover>();  // outlives a caller that gave up
  const bool has_run = loop_.run(
      [this, handover, request = std::move(request), sink = std::move(sink)]() mutable {
        const gen::RequestId id = request.id;
        {
          const std::lock_guard lock(handover->mutex);
          if (handover->is_abandoned) return;
          handover->status = instance_.submit(std::move(request));
          if (!handover->status) return;
          sinks_.emplace(id, std::move(sink));
        }
        perform();
      },
      kSubmitTimeout);
  const std::lock_guard lock(handover->mutex);
  handover->is_abandoned = true;
  if (has_run) return handover->status;
  return Error{ErrorCode::kUnavailable, "the server is stopped, or did not answer in time"};
}

void InstanceGenerator::cancel(gen::RequestId id) {
  loop_.post([this, id] {
    instance_.cancel(id);
    perform();
  });
}

gen::Limits InstanceGenerator::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

bool InstanceGenerator::wait_ready(Duration time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] {
    return state_ != InstanceState::kStarting && state_ != InstanceState::kReforming;
  });
  return state_ == InstanceState::kReady;
}

void InstanceGenerator::drain() {
  loop_.post([this] {
    instance_.drain();
    perform();
  });
}

bool InstanceGenerator::wait_drained(Duration time) {
  return wait_until([this] { return is_drained_; }, time);
}

void InstanceGenerator::stop() {
  const bool was_posted = loop_.post([this] {
    instance_.stop();
    perform();
  });
  if (was_posted) wait_until([this] { return state_ == InstanceState::kStopped; }, kStopTimeout);
  loop_.stop();
  ranks_.reset();
  links_.reset();
}

InstanceSnapshot InstanceGenerator::snapshot() {
  const bool is_fresh = loop_.run(
      [this] {
        InstanceSnapshot taken = instance_.snapshot();
        const std::lock_guard lock(mutex_);
        last_snapshot_ = std::move(taken);
      },
      kSnapshotTimeout);
  const std::lock_guard lock(mutex_);
  InstanceSnapshot result = last_snapshot_;
  if (!is_fresh) result.is_healthy = false;
  if (!is_fresh) result.state = state_;
  return result;
}

void InstanceGenerator::tick() {
  instance_.tick();
  settle_departures();
}

// Doing an action may bring news that asks for more.
void InstanceGenerator::perform() {
  for (auto actions = instance_.take_actions(); !actions.empty();
       actions = instance_.take_actions()) {
    for (Action& action : actions) {
      if (const auto* start = std::get_if<Spawn>(&action)) {
        const Status spawned = ranks_->spawn(start->who);
        if (!spawned) instance_.on_spawn_failed(start->who, spawned.error());
      } else if (const auto* end = std::get_if<Kill>(&action)) {
        ranks_->kill(end->who);
        if (const auto link = link_to(end->who)) links_->close(*link);
      } else if (const auto* frame = std::get_if<Send>(&action)) {
        perform(*frame);
      } else {
        deliver(std::move(std::get<Deliver>(action).event));
      }
    }
  }
  publish();
}

// A lost link is told by its own handler; one that takes no more is as good as lost.
void InstanceGenerator::perform(const Send& action) {
  const auto link = link_to(action.who);
  if (!link) return;
  const Status sent = links_->send(*link, action.frame);
  if (sent || sent.error().code == ErrorCode::kPeerLost) return;
  instance_.on_link_closed(action.who, sent.error());
}

void InstanceGenerator::deliver(gen::Event event) {
  const auto it = sinks_.find(event.request);
  TANDEM_CHECK(it != sinks_.end(), "an event for request {}, which has ended", event.request);
  const bool is_last = event.is_last();
  const gen::Sink sink = is_last ? std::move(it->second) : gen::Sink{};
  if (!is_last) return it->second(std::move(event));
  sinks_.erase(it);
  sink(std::move(event));
}

void InstanceGenerator::settle_departures() {
  for (const Departures::News& news : departures_.settle(clock_.now())) {
    if (news.link) instance_.on_link_closed(news.who, *news.link);
    if (!news.exit) continue;
    ranks_->forget(news.who);
    instance_.on_exit(news.who, *news.exit);
  }
  perform();
}

void InstanceGenerator::on_link_frame(LinkId id, plan::Frame frame) {
  const auto who = who_of_.find(id);
  if (who != who_of_.end()) {
    instance_.on_frame(who->second, std::move(frame));
  } else if (const auto* hello = std::get_if<plan::Hello>(&frame)) {
    on_hello(id, *hello);
  } else {
    links_->close(id);
  }
  perform();
}

void InstanceGenerator::on_hello(LinkId id, const plan::Hello& hello) {
  const auto who = ranks_->find(hello.rank, hello.pid);
  if (hello.instance != options_.instance.name || !who || link_to(*who)) {
    TANDEM_LOG(kWarn, "a link was refused: it says it is rank {} of {} with pid {}", hello.rank,
               hello.instance, hello.pid);
    return links_->close(id);
  }
  const auto older = link_of_.find(hello.rank);  // of a killed process, not closed yet
  if (older != link_of_.end()) who_of_.erase(older->second);
  who_of_[id] = *who;
  link_of_[hello.rank] = id;
  instance_.on_hello(*who, hello);
}

std::optional<LinkId> InstanceGenerator::link_to(Incarnation who) const {
  const auto link = link_of_.find(who.rank);
  if (link == link_of_.end() || who_of_.at(link->second) != who) return std::nullopt;
  return link->second;
}

void InstanceGenerator::on_link_closed(LinkId id, Error why) {
  links_->forget(id);
  const auto it = who_of_.find(id);
  if (it == who_of_.end()) return;
  const Incarnation who = it->second;
  link_of_.erase(who.rank);
  who_of_.erase(it);
  departures_.link_closed(who, std::move(why), clock_.now());
  settle_departures();
}

void InstanceGenerator::publish() {
  {
    const std::lock_guard lock(mutex_);
    state_ = instance_.state();
    is_drained_ = instance_.is_drained();
    if (instance_.shape()) limits_ = instance_.shape()->limits;
  }
  changed_.notify_all();
}

Status InstanceGenerator::check(const gen::Request& request) const {
  const gen::Limits limits = this->limits();
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalid, "the prompt is empty", "prompt"};
  }
  if (limits == gen::Limits{}) return {};
  if (Status fits = gen::check_index_reuse(request.index_reuse, limits); !fits) return fits;
  if (request.pooling && request.prompt.size() > limits.max_context) {
    return Error{ErrorCode::kTooLarge,
                 fmt::format("the prompt has {} tokens; the context is of {}",
                             request.prompt.size(), limits.max_context),
                 "prompt"};
  }
  if (!request.pooling && request.prompt.size() >= limits.max_context) {
    return Error{ErrorCode::kTooLarge,
                 fmt::format("the prompt has {} tokens; with at least one for the answer, the "
                             "context of {} tokens cannot hold it",
                             request.prompt.size(), limits.max_context),
                 "prompt"};
  }
  const auto is_unknown = [&](gen::TokenId id) {
    return id < 0 || static_cast<uint32_t>(id) >= limits.vocab;
  };
  const auto unknown = std::find_if(request.prompt.begin(), request.prompt.end(), is_unknown);
  if (unknown == request.prompt.end()) return {};
  return Error{ErrorCode::kInvalid,
               fmt::format("the prompt holds token id {}, but the vocabulary has {} ids", *unknown,
                           limits.vocab),
               "prompt"};
}

bool InstanceGenerator::wait_until(const std::function<bool()>& condition, Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, condition);
}

}  // namespace tandem::control
