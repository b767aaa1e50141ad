#include "control/instance.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "control/simulated_world_test.h"

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

/// Lost epochs are the subject here, not news.
struct Quiet {
  LogLevel before = log_level();
  Quiet() { set_log_level(LogLevel::kError); }
  ~Quiet() { set_log_level(before); }
};

bool is_whole(gen::RequestId id, const Stream& stream) {
  for (size_t i = 0; i < stream.tokens.size(); ++i) {
    if (stream.tokens[i] != expected_token(id, i)) return false;
  }
  return true;
}

bool is_finished(const Stream& stream) {
  return stream.last.size() == 1 && std::holds_alternative<gen::Finished>(stream.last[0].body);
}

bool is_failed(const Stream& stream, ErrorCode code) {
  if (stream.last.size() != 1) return false;
  const auto* failed = std::get_if<gen::Failed>(&stream.last[0].body);
  return failed != nullptr && failed->error.code == code;
}

/// What holds in every world, whatever happens.
void check_promises(const World& world, uint64_t seed) {
  CAPTURE(seed);
  for (const std::string& violation : world.violations()) FAIL_CHECK(violation);
  CHECK(world.longest_detection() <= 5s);
  for (const auto& [id, stream] : world.streams()) {
    CAPTURE(id);
    CHECK(stream.last.size() == (stream.was_refused ? 0 : 1));
    CHECK(is_whole(id, stream));
    CHECK(stream.starts <= 1);
    if (is_finished(stream)) CHECK(stream.tokens.size() == stream.max_tokens);
    if (stream.is_poisoned) CHECK(!is_finished(stream));
    const bool is_cancelled =
        !stream.last.empty() && std::holds_alternative<gen::Cancelled>(stream.last[0].body);
    if (is_cancelled) CHECK(stream.was_cancelled);
  }
}

TEST_CASE("instance: without a fault every stream is whole and nobody is killed") {
  const Quiet quiet;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    World world({.seed = seed, .ranks = 1 + static_cast<uint32_t>(seed % 4), .requests = 10});
    world.run(120s);
    check_promises(world, seed);
    for (const auto& [id, stream] : world.streams()) CHECK(is_finished(stream));
    CHECK(world.instance().snapshot().lost_epochs == 0);
  }
}

TEST_CASE("instance: thousands of random faults lose no token, repeat none, and end each once") {
  const Quiet quiet;
  uint32_t faults = 0;
  uint32_t finished = 0;
  uint32_t failed = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    World world({.seed = seed,
                 .ranks = 1 + static_cast<uint32_t>(seed % 4),
                 .requests = 12,
                 .cancels = 3,
                 .fault_every = 500ms + 500ms * (seed % 7),
                 .faults_until = 20s,
                 .instance = {.barren_allowed = 1000, .failed_starts_allowed = 1000}});
    world.run(400s);
    check_promises(world, seed);
    faults += world.faults();
    for (const auto& [id, stream] : world.streams()) {
      finished += is_finished(stream) ? 1U : 0U;
      if (is_failed(stream, ErrorCode::kPeerLost)) ++failed;
    }
  }
  CHECK(faults > 5000);
  CHECK(finished > 6000);
  CHECK(failed > 100);  // so that this end was taken, too
}

TEST_CASE("instance: where a group ends with its processes, faults lose no token either") {
  const Quiet quiet;
  uint32_t faults = 0;
  uint32_t finished = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    World world({.seed = seed,
                 .ranks = 2 + static_cast<uint32_t>(seed % 3),
                 .requests = 12,
                 .cancels = 3,
                 .fault_every = 1s + 500ms * (seed % 7),
                 .faults_until = 20s,
                 .instance = {.comm = plan::CommKind::kRing,
                              .barren_allowed = 1000,
                              .failed_starts_allowed = 1000}});
    world.run(400s);
    check_promises(world, seed);
    faults += world.faults();
    for (const auto& [id, stream] : world.streams()) finished += is_finished(stream) ? 1U : 0U;
  }
  CHECK(faults > 1000);
  CHECK(finished > 2000);
}

TEST_CASE("instance: one fault in a stream's life never fails it") {
  const Quiet quiet;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World world({.seed = seed,
                 .ranks = 1 + static_cast<uint32_t>(seed % 4),
                 .requests = 6,
                 .fault_every = 1s + 1ms * (seed * 37 % 9000),
                 .faults_until = 1s + 1ms * (seed * 37 % 9000)});
    world.run(200s);
    check_promises(world, seed);
    for (const auto& [id, stream] : world.streams()) CHECK(is_finished(stream));
  }
}

TEST_CASE("instance: a request that kills ranks is failed, and its neighbours finish") {
  const Quiet quiet;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World world(
        {.seed = seed, .ranks = 1 + static_cast<uint32_t>(seed % 4), .requests = 8, .poisoned = 1});
    world.run(400s);
    check_promises(world, seed);
    CHECK(world.deaths() >= 2);
    CHECK(world.deaths() <= 3);  // one more when the word of its start was overtaken
    for (const auto& [id, stream] : world.streams()) {
      CAPTURE(seed);
      CAPTURE(id);
      if (stream.is_poisoned) CHECK(is_failed(stream, ErrorCode::kPeerLost));
      if (!stream.is_poisoned) CHECK(is_finished(stream));
    }
  }
}

TEST_CASE("instance: many requests that kill ranks, even without a word, are all found") {
  const Quiet quiet;
  uint32_t others = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World world({.seed = seed,
                 .ranks = 1 + static_cast<uint32_t>(seed % 4),
                 .requests = 8,
                 .poisoned = 1 + static_cast<uint32_t>(seed % 3),
                 .loses_started = true});
    world.run(400s);
    check_promises(world, seed);
    CHECK(world.deaths() <= 3 * (1 + seed % 3));
    for (const auto& [id, stream] : world.streams()) {
      if (stream.is_poisoned) CHECK(is_failed(stream, ErrorCode::kPeerLost));
      if (!stream.is_poisoned && is_finished(stream)) ++others;
    }
  }
  CHECK(others > 300 * 5);  // of 6: now and then a neighbour is taken for the culprit
}

/// An instance of two ranks whose events a test gives by hand.
struct ByHand {
  ManualClock clock;
  Instance instance;

  explicit ByHand(InstanceOptions options = {.ranks = 2}) : instance(std::move(options), clock) {}

  template <class T>
  std::vector<T> take(const std::vector<Action>& actions) {
    std::vector<T> result;
    for (const Action& action : actions) {
      if (const auto* it = std::get_if<T>(&action)) result.push_back(*it);
    }
    return result;
  }
  void pass(Duration time) {
    for (; time > 0s; time -= 100ms) {
      clock.advance(100ms);
      instance.tick();
    }
  }
  void make_ready() {
    instance.start();
    for (const uint32_t rank : {0U, 1U}) instance.on_hello({rank, 1}, {.rank = rank, .pid = 5});
    for (const uint32_t rank : {0U, 1U}) instance.on_frame({rank, 1}, plan::Ready{.epoch = 1});
    REQUIRE(instance.state() == InstanceState::kReady);
    instance.take_actions();
  }
  Status submit(gen::RequestId id) {
    gen::Request request;
    request.id = id;
    request.prompt = {1};
    return instance.submit(request);
  }
};

TEST_CASE(
    "instance: a rank that cannot start fails the instance with the reason, and all requests") {
  const Quiet quiet;
  set_log_level(static_cast<LogLevel>(99));
  ByHand hand({.ranks = 1});
  hand.instance.start();
  REQUIRE(hand.submit(1).has_value());
  std::vector<Deliver> delivered;
  for (int i = 0; i < 600 && delivered.empty(); ++i) {
    const auto actions = hand.instance.take_actions();
    for (const Spawn& spawn : hand.take<Spawn>(actions)) {
      hand.instance.on_exit(spawn.who, "exited with code 1");
    }
    delivered = hand.take<Deliver>(actions);
    hand.pass(100ms);
  }
  CHECK(hand.instance.state() == InstanceState::kFailed);
  REQUIRE(delivered.size() == 1);
  const auto& error = std::get<gen::Failed>(delivered[0].event.body).error;
  CHECK(error.code == ErrorCode::kUnavailable);
  CHECK(error.message.find("rank 0 exited with code 1") != std::string::npos);
  CHECK(hand.submit(2).error().message.find("exited with code 1") != std::string::npos);
}

TEST_CASE("instance: ranks of different builds are refused by name before they form") {
  const Quiet quiet;
  set_log_level(static_cast<LogLevel>(99));
  ByHand hand;
  hand.instance.start();
  hand.instance.on_hello({0, 1}, {.build = "1.0 aaa", .rank = 0});
  hand.instance.on_hello({1, 1}, {.build = "1.0 bbb", .rank = 1});
  CHECK(hand.instance.state() == InstanceState::kFailed);
  const std::string trouble = hand.instance.snapshot().trouble;
  CHECK(trouble.find("1.0 aaa") != std::string::npos);
  CHECK(trouble.find("1.0 bbb") != std::string::npos);
  for (const Send& frame : hand.take<Send>(hand.instance.take_actions())) {
    CHECK(!std::holds_alternative<plan::Form>(frame.frame));
  }
}

TEST_CASE("instance: a rank that can never load fails the instance at once, in its words") {
  const Quiet quiet;
  set_log_level(static_cast<LogLevel>(99));
  for (const uint32_t epoch : {0U, 1U}) {  // before the rank knew of its epoch, and after
    ByHand hand;
    hand.instance.start();
    for (const uint32_t rank : {0U, 1U}) hand.instance.on_hello({rank, 1}, {.rank = rank});
    hand.instance.on_frame(
        {1, 1}, plan::Fault{.epoch = epoch, .error = {ErrorCode::kUnsupported, "model_type foo"}});
    CHECK(hand.instance.state() == InstanceState::kFailed);
    CHECK(hand.instance.snapshot().trouble.find("model_type foo") != std::string::npos);
  }
  ByHand hand;  // what may pass is tried again
  hand.instance.start();
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_hello({rank, 1}, {.rank = rank});
  hand.instance.on_frame({1, 1}, plan::Fault{.epoch = 1, .error = {ErrorCode::kPeerLost, "link"}});
  CHECK(hand.instance.state() == InstanceState::kStarting);
}

TEST_CASE("instance: a rank that ends while it loads is told of with the reason that it gave") {
  const Quiet quiet;
  set_log_level(static_cast<LogLevel>(99));
  ByHand hand;
  hand.instance.start();
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_hello({rank, 1}, {.rank = rank});
  hand.instance.on_frame({1, 1}, plan::Fault{.error = {ErrorCode::kIo, "too many open files"}});
  CHECK(hand.instance.state() == InstanceState::kStarting);
  hand.instance.on_exit({1, 1}, "exited with code 5");
  CHECK(hand.instance.state() == InstanceState::kStarting);
  CHECK(hand.instance.snapshot().trouble == "rank 1 exited with code 5: too many open files");
}

TEST_CASE("instance: a rank without a fingerprint is waited for, since it will say why") {
  const Quiet quiet;
  set_log_level(static_cast<LogLevel>(99));
  for (const bool is_first : {true, false}) {
    ByHand hand;
    hand.instance.start();
    const uint32_t lacking = is_first ? 0 : 1;
    for (const uint32_t rank : {0U, 1U}) {
      hand.instance.on_hello({rank, 1},
                             {.rank = rank, .model_fingerprint = rank == lacking ? "" : "f00d"});
    }
    CHECK(hand.instance.state() == InstanceState::kStarting);
    hand.instance.on_frame({lacking, 1},
                           plan::Fault{.error = {ErrorCode::kInvalid, "no such instructions"}});
    CHECK(hand.instance.state() == InstanceState::kFailed);
    CHECK(hand.instance.snapshot().trouble ==
          fmt::format("rank {} cannot start: no such instructions", lacking));
  }
}

TEST_CASE("instance: a fault without a dead rank re-forms with the same processes") {
  const Quiet quiet;
  ByHand hand;
  hand.make_ready();
  hand.instance.on_frame({1, 1}, plan::Fault{.epoch = 1, .error = {ErrorCode::kCorrupt, "hash"}});
  CHECK(hand.instance.state() == InstanceState::kReforming);
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_frame({rank, 1}, plan::Aborted{.epoch = 1});
  const auto actions = hand.instance.take_actions();
  CHECK(hand.take<Kill>(actions).empty());
  CHECK(hand.take<Spawn>(actions).empty());
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_frame({rank, 1}, plan::Ready{.epoch = 2});
  CHECK(hand.instance.state() == InstanceState::kReady);
  CHECK(hand.instance.snapshot().epoch == 2);
}

TEST_CASE(
    "instance: health turns bad when work in flight delivers nothing, and the stall ends it") {
  const Quiet quiet;
  ByHand hand({.ranks = 2, .progress = {.first_step = 5s}});
  hand.make_ready();
  CHECK(hand.instance.snapshot().is_healthy);
  REQUIRE(hand.submit(1).has_value());
  std::vector<Action> actions;
  for (int second = 0; second < 7; ++second) {
    for (const uint32_t rank : {0U, 1U}) {
      hand.instance.on_frame({rank, 1}, plan::Beat{.epoch = 1, .steps = 3, .busy = true});
    }
    hand.pass(1s);
    for (Action& action : hand.instance.take_actions()) actions.push_back(std::move(action));
  }
  CHECK(!hand.instance.snapshot().is_healthy);
  CHECK(hand.instance.state() == InstanceState::kReforming);
  CHECK(hand.take<Kill>(actions).size() == 2);  // neither said Aborted within a second
}

TEST_CASE("instance: a hung collective of MLX's own ends with its processes, which start anew") {
  const Quiet quiet;
  ByHand hand({.ranks = 2, .comm = plan::CommKind::kRing, .progress = {.first_step = 5s}});
  hand.make_ready();
  REQUIRE(hand.submit(1).has_value());
  std::vector<Action> actions;
  for (int second = 0; second < 6; ++second) {  // both live and say so; no step is made
    for (const uint32_t rank : {0U, 1U}) {
      hand.instance.on_frame({rank, 1}, plan::Beat{.epoch = 1, .steps = 3, .busy = true});
    }
    hand.pass(1s);
    for (Action& action : hand.instance.take_actions()) actions.push_back(std::move(action));
  }
  CHECK(hand.take<Kill>(actions).size() == 2);
  for (const Send& sent : hand.take<Send>(actions)) {
    CHECK(!std::holds_alternative<plan::Abort>(sent.frame));
  }
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_exit({rank, 1}, "was killed by signal 9");
  CHECK(hand.take<Spawn>(hand.instance.take_actions()).size() == 2);
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_hello({rank, 2}, {.rank = rank});
  for (const uint32_t rank : {0U, 1U}) hand.instance.on_frame({rank, 2}, plan::Ready{.epoch = 2});
  CHECK(hand.instance.state() == InstanceState::kReady);
  CHECK(hand.take<Deliver>(hand.instance.take_actions()).empty());  // the request goes on
}

TEST_CASE("instance: draining refuses new requests and lets running ones finish") {
  const Quiet quiet;
  ByHand hand;
  hand.make_ready();
  REQUIRE(hand.submit(1).has_value());
  hand.instance.drain();
  CHECK(hand.submit(2).error().code == ErrorCode::kUnavailable);
  CHECK(!hand.instance.is_drained());
  hand.instance.on_frame(
      {0, 1}, plan::Report{.epoch = 1, .events = {{.request = 1, .body = gen::Finished{}}}});
  CHECK(hand.instance.is_drained());
}

TEST_CASE("instance: time in which the head itself did not run is held against nobody") {
  const Quiet quiet;
  ByHand hand;
  hand.make_ready();
  hand.clock.advance(20s);
  hand.instance.tick();
  CHECK(hand.instance.state() == InstanceState::kReady);
  hand.pass(4s);  // but now their beats are due
  CHECK(hand.instance.state() == InstanceState::kReforming);
}

TEST_CASE("instance: too many requests are refused, fewer while it is not ready") {
  const Quiet quiet;
  ByHand hand({.ranks = 2, .max_requests = 3, .max_waiting = 1});
  hand.instance.start();
  CHECK(hand.submit(1).has_value());
  CHECK(hand.submit(2).error().code == ErrorCode::kUnavailable);
  ByHand other({.ranks = 2, .max_requests = 3, .max_waiting = 1});
  other.make_ready();
  for (const gen::RequestId id : {1, 2, 3}) CHECK(other.submit(id).has_value());
  CHECK(other.submit(4).error().code == ErrorCode::kBusy);
}

TEST_CASE("instance: stop ends every request and asks before it kills") {
  const Quiet quiet;
  ByHand hand;
  hand.make_ready();
  REQUIRE(hand.submit(1).has_value());
  hand.instance.take_actions();
  hand.instance.stop();
  const auto actions = hand.instance.take_actions();
  CHECK(hand.take<Deliver>(actions).size() == 1);
  CHECK(hand.take<Kill>(actions).empty());
  CHECK(hand.take<Send>(actions).size() == 2);
  hand.instance.on_exit({0, 1}, "exited with code 0");
  hand.pass(3s);
  CHECK(hand.take<Kill>(hand.instance.take_actions()).size() == 1);
  hand.instance.on_exit({1, 1}, "was killed");
  CHECK(hand.instance.state() == InstanceState::kStopped);
}

}  // namespace

TEST_CASE("instance: an answer that goes on is taken where new requests are refused") {
  const Quiet quiet;
  const auto going_on = [](gen::RequestId id) {
    return gen::Request{.id = id, .prompt = {1, 2}, .emitted = {3}};
  };
  ByHand hand({.ranks = 2, .max_requests = 1, .max_waiting = 1});
  hand.make_ready();
  CHECK(hand.submit(1).has_value());
  CHECK(hand.submit(2).error().code == ErrorCode::kBusy);
  CHECK(hand.instance.submit(going_on(3)).has_value());
  hand.instance.drain();
  CHECK(hand.instance.submit(going_on(4)).has_value());
  hand.instance.take_actions();
  hand.instance.stop();
  CHECK(hand.instance.submit(going_on(5)).error().code == ErrorCode::kUnavailable);
}

}  // namespace tandem::control
