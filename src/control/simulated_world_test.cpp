#include "control/simulated_world_test.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::control {

using namespace std::chrono_literals;

gen::TokenId expected_token(gen::RequestId id, size_t place) {
  return static_cast<gen::TokenId>((id * 7919 + place * 104729) % 5000);
}

World::World(WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      instance_(
          [this] {
            options_.instance.ranks = options_.ranks;
            return options_.instance;
          }(),
          clock_),
      ranks_(options_.ranks) {}

void World::run(Duration limit) {
  instance_.start();
  for (gen::RequestId id = 1; id <= options_.requests; ++id) {
    later(some_ms(0, 8000), [this, id] { add_client(id); });
  }
  if (options_.fault_every > 0s) later(options_.fault_every, [this] { fault(); });
  const TimePoint end = clock_.now() + limit;
  const auto all_ended = [this] {
    return streams_.size() == options_.requests &&
           std::all_of(streams_.begin(), streams_.end(), [](const auto& entry) {
             return entry.second.was_refused || !entry.second.last.empty();
           });
  };
  std::function<void()> tick = [&] {
    instance_.tick();
    later(100ms, tick);
  };
  later(100ms, tick);
  bool is_over = false;
  while (!is_over) {
    for (Action& action : instance_.take_actions()) perform(std::move(action));
    const auto next = agenda_.begin();
    clock_.advance(std::max(next->first - clock_.now(), Duration{}));
    const auto what = std::move(next->second);
    agenda_.erase(next);
    what();
    if (!is_stopping_ && (all_ended() || clock_.now() > end)) {
      if (!all_ended()) violate("not every request ended in time");
      is_stopping_ = true;
      instance_.stop();
    }
    is_over = is_stopping_ && instance_.state() == InstanceState::kStopped;
    if (clock_.now() > end + 60s) {
      violate("the instance did not stop");
      return;
    }
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].health != Health::kDead) violate(fmt::format("rank {} is left", rank));
  }
}

Duration World::some_ms(int least, int most) {
  return std::chrono::microseconds(
      least * 1000 + static_cast<int64_t>(draw(static_cast<uint64_t>(most - least) * 1000 + 1)));
}

void World::later(Duration delay, std::function<void()> what) {
  agenda_.emplace(clock_.now() + delay, std::move(what));
}

bool World::runs(Incarnation who) const {
  return ranks_[who.rank].number == who.number && ranks_[who.rank].health != Health::kDead;
}

void World::perform(Action action) {
  if (const auto* start = std::get_if<Spawn>(&action)) return spawn(start->who);
  if (const auto* end = std::get_if<Kill>(&action)) return kill(end->who);
  if (const auto* event = std::get_if<Deliver>(&action)) return deliver(event->event);
  const Send& frame = std::get<Send>(action);
  later(some_ms(0, 5), [this, frame] { receive(frame.who, frame.frame); });
}

void World::spawn(Incarnation who) {
  Rank& rank = ranks_[who.rank];
  if (rank.health != Health::kDead) violate("a rank was started while its last process lives");
  rank = Rank{.number = who.number, .health = Health::kWell, .link_free_at = clock_.now()};
  later(some_ms(50, 800), [this, who] {
    if (!runs(who) || ranks_[who.rank].health == Health::kFrozen) return;
    ranks_[who.rank].said_hello = true;
    instance_.on_hello(who, {.build = "sim", .rank = who.rank, .pid = who.number});
    beat(who);
  });
}

void World::kill(Incarnation who) {
  if (!runs(who)) return;  // it died in between: its exit is on the way
  const bool is_to_blame =
      ranks_[who.rank].health != Health::kWell || plan::ends_with_process(options_.instance.comm);
  if (!is_stopping_ && !is_to_blame) {
    violate(fmt::format("healthy rank {} was killed: {}", who.rank, instance_.snapshot().trouble));
  }
  detected(who.rank);
  ranks_[who.rank].health = Health::kDead;
  later(some_ms(0, 30), [this, who] { instance_.on_exit(who, "was killed"); });
}

void World::die(uint32_t index, const std::string& how) {
  Rank& rank = ranks_[index];
  const Incarnation who{index, rank.number};
  if (rank.health == Health::kDead) return;
  rank.health = Health::kDead;
  if (!is_stopping_) ++deaths_;
  const bool is_linked = rank.said_hello;
  // Its last words come first, then the end of its link (which may be lost), then its exit.
  const Duration words = std::max(rank.link_free_at - clock_.now(), Duration{}) + some_ms(0, 20);
  later(words + some_ms(0, 20), [this, who, how] { instance_.on_exit(who, how); });
  if (!is_linked || draw(4) == 0) return;
  later(words, [this, who] { instance_.on_link_closed(who, {ErrorCode::kPeerLost, "closed"}); });
}

void World::detected(uint32_t index) {
  const Rank& rank = ranks_[index];
  const bool is_silent = rank.health == Health::kFrozen || rank.health == Health::kCutOff;
  if (is_stopping_ || !is_silent || !rank.said_hello) return;
  longest_detection_ = std::max(longest_detection_, clock_.now() - rank.sick_since);
}

// A frame of a rank travels for a while, keeps its place behind earlier ones, and arrives also when
// the rank died after sending it.
void World::say(uint32_t index, plan::Frame frame) {
  Rank& rank = ranks_[index];
  if (rank.health == Health::kDead || rank.health == Health::kFrozen ||
      rank.health == Health::kCutOff) {
    return;
  }
  rank.link_free_at = std::max(rank.link_free_at, clock_.now() + some_ms(0, 40));
  const Incarnation who{index, rank.number};
  agenda_.emplace(rank.link_free_at,
                  [this, who, frame = std::move(frame)] { instance_.on_frame(who, frame); });
}

void World::receive(Incarnation who, const plan::Frame& frame) {
  Rank& rank = ranks_[who.rank];
  if (!runs(who) || rank.health == Health::kFrozen || rank.health == Health::kCutOff) return;
  if (std::holds_alternative<plan::Shutdown>(frame)) return die(who.rank, "exited with code 0");
  if (const auto* to_abort = std::get_if<plan::Abort>(&frame)) abort(who.rank, to_abort->epoch);
  if (const auto* to_form = std::get_if<plan::Form>(&frame)) form(who.rank, *to_form);
  if (const auto* submit = std::get_if<plan::Submit>(&frame)) {
    if (who.rank != 0) violate("a request went to a follower");
    if (submit->epoch != rank.epoch) return;
    const auto [it, is_new] = engine_.try_emplace(submit->request.id);
    if (!is_new) violate("a request was submitted twice in one epoch");
    it->second.request = submit->request;
    it->second.place = submit->request.emitted.size();
  }
  if (const auto* cancel = std::get_if<plan::Cancel>(&frame)) {
    const auto it = engine_.find(cancel->request);
    if (it != engine_.end() && cancel->epoch == rank.epoch) it->second.is_cancelled = true;
  }
}

void World::form(uint32_t index, const plan::Form& form) {
  Rank& rank = ranks_[index];
  if (form.rank != index || form.size != options_.ranks) violate("a Form is wrong");
  if (form.epoch < highest_epoch_) violate("an epoch went back");
  if (rank.epoch >= form.epoch) violate("an epoch was formed twice");
  if (rank.epoch != 0 && plan::ends_with_process(form.comm)) violate("a process formed twice");
  highest_epoch_ = form.epoch;
  rank.epoch = form.epoch;
  rank.is_ready = false;
  if (index == 0) engine_.clear();
  const bool all_came = std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
    return other.epoch == form.epoch && other.health == Health::kWell;
  });
  if (!all_came) return;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    const Incarnation who{i, ranks_[i].number};
    later(some_ms(5, 300), [this, who, epoch = form.epoch] {
      if (!runs(who) || ranks_[who.rank].epoch != epoch) return;
      ranks_[who.rank].is_ready = true;
      say(who.rank, plan::Ready{.epoch = epoch,
                                .limits = {.vocab = 5000, .max_context = 4096},
                                .pages = 64,
                                .page_tokens = 16,
                                .depth = 1});
    });
  }
  later(400ms, [this, epoch = form.epoch] { step(epoch); });
}

void World::abort(uint32_t index, uint32_t epoch) {
  Rank& rank = ranks_[index];
  if (rank.health == Health::kStuck) return;
  if (rank.epoch == epoch) {
    rank.is_ready = false;
    if (index == 0) engine_.clear();
  }
  const Incarnation who{index, rank.number};
  later(some_ms(0, 600), [this, who, epoch] {
    if (runs(who)) say(who.rank, plan::Aborted{.epoch = epoch});
  });
}

void World::beat(Incarnation who) {
  if (!runs(who)) return;
  const Rank& rank = ranks_[who.rank];
  say(who.rank, plan::Beat{.epoch = rank.epoch, .steps = rank.steps, .busy = !engine_.empty()});
  later(1s, [this, who] { beat(who); });
}

bool World::group_works(uint32_t epoch) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [epoch](const Rank& rank) {
    const bool moves = rank.health == Health::kWell || rank.health == Health::kCutOff;
    return moves && rank.is_ready && rank.epoch == epoch;
  });
}

void World::step(uint32_t epoch) {
  if (ranks_[0].epoch != epoch || ranks_[0].health == Health::kDead) return;
  later(some_ms(5, 60), [this, epoch] { step(epoch); });
  if (!group_works(epoch) || engine_.empty()) return;
  plan::Report report{.epoch = epoch, .events = {}};
  size_t rows = 0;
  bool is_deadly = false;
  for (auto it = engine_.begin(); it != engine_.end() && rows < 4;) {
    const auto here = it++;
    ++rows;
    is_deadly |= step_request(here->second, report.events);
    if (!report.events.empty() && report.events.back().is_last()) engine_.erase(here);
  }
  for (Rank& rank : ranks_) ++rank.steps;
  if (!is_deadly || !options_.loses_started) say(0, report);
  if (is_deadly) die(static_cast<uint32_t>(draw(ranks_.size())), "was killed by signal 11");
}

bool World::step_request(Running& running, std::vector<gen::Event>& events) {
  const gen::Request& request = running.request;
  if (running.is_cancelled) {
    events.push_back({.request = request.id, .body = gen::Cancelled{}});
    return false;
  }
  if (streams_.at(request.id).is_poisoned && running.place >= 3) return true;
  if (!std::exchange(running.has_started, true)) {
    events.push_back({.request = request.id, .body = gen::Started{}});
    events.push_back({.request = request.id, .body = gen::Prefilled{3, 3}});
    return false;
  }
  gen::Tokens tokens;
  for (size_t n = 1 + draw(3); n > 0 && running.place < request.max_tokens; --n) {
    tokens.tokens.push_back(
        {.id = expected_token(request.id, running.place++), .logprob = 0, .top = {}});
  }
  if (!tokens.tokens.empty()) events.push_back({.request = request.id, .body = tokens});
  if (running.place < request.max_tokens) return false;
  events.push_back({.request = request.id, .body = gen::Finished{gen::FinishReason::kLength}});
  return false;
}

void World::fault() {
  if (is_stopping_ || clock_.now() - TimePoint{} > options_.faults_until) return;
  const auto mean_us = options_.fault_every / 1us;
  later(std::chrono::microseconds(draw(static_cast<uint64_t>(2 * mean_us))), [this] { fault(); });
  const auto index = static_cast<uint32_t>(draw(ranks_.size()));
  Rank& rank = ranks_[index];
  if (rank.health != Health::kWell) return;
  ++faults_;
  rank.sick_since = clock_.now();
  switch (draw(5)) {
    case 0:
      return die(index, "was killed by signal 9");
    case 1:
      rank.health = Health::kFrozen;
      return;
    case 2:
      rank.health = Health::kCutOff;
      return;
    case 3:
      if (rank.is_ready && !engine_.empty()) rank.health = Health::kStuck;
      return;
    default:
      return say(index, plan::Fault{.epoch = rank.epoch, .error = {ErrorCode::kPeerLost, "link"}});
  }
}

void World::add_client(gen::RequestId id) {
  Stream& stream = streams_[id];
  stream.max_tokens = static_cast<uint32_t>(1 + draw(60));
  stream.is_poisoned = id <= options_.poisoned;
  gen::Request request;
  request.id = id;
  request.prompt = {1, 2, 3};
  request.max_tokens = stream.is_poisoned ? 1000 : stream.max_tokens;
  stream.was_refused = !instance_.submit(request).has_value();
  if (id > options_.requests - options_.cancels) {
    later(some_ms(0, 6000), [this, id] {
      streams_[id].was_cancelled = true;
      instance_.cancel(id);
    });
  }
}

void World::deliver(const gen::Event& event) {
  Stream& stream = streams_[event.request];
  if (!stream.last.empty()) violate(fmt::format("{}: an event after the last", event.request));
  if (stream.was_refused) violate(fmt::format("{}: an event of a refused one", event.request));
  if (event.is_last()) stream.last.push_back(event);
  if (std::holds_alternative<gen::Started>(event.body)) ++stream.starts;
  if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    for (const gen::Token& token : tokens->tokens) stream.tokens.push_back(token.id);
  }
}

}  // namespace tandem::control
