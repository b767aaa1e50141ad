// Embeddings through the service: order, bounds, turns, ends.
#include "chat/embedder.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "chat/testdata/harness.h"

namespace tandem::chat {
namespace {

using namespace std::chrono_literals;

/// What a sink was told.
class Told {
 public:
  EmbeddingSink sink() {
    return [this](EmbeddingEvent event) {
      const std::lock_guard lock(mutex_);
      if (const auto* progress = std::get_if<EmbeddingProgress>(&event)) {
        CHECK(progress->done >= progress_.done);
        progress_ = *progress;
        return;
      }
      ++ends_;
      last_ = std::move(event);
      ended_.notify_all();
    };
  }

  EmbeddingEvent wait() {
    std::unique_lock lock(mutex_);
    REQUIRE(ended_.wait_for(lock, 10s, [&] { return last_.has_value(); }));
    CHECK(ends_ == 1);
    return *last_;
  }

  Vectors vectors() {
    EmbeddingEvent event = wait();
    if (const auto* error = std::get_if<Error>(&event)) FAIL(error->message);
    return std::get<Vectors>(event);
  }

  Error error() { return std::get<Error>(wait()); }

  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return last_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<EmbeddingEvent> last_;
  EmbeddingProgress progress_;
  int ends_ = 0;
};

EmbeddingRequest wanting(std::string id, size_t inputs) {
  EmbeddingRequest request{.id = std::move(id), .client = "c"};
  for (size_t i = 0; i < inputs; ++i)
    request.inputs.push_back({std::vector<gen::TokenId>{static_cast<gen::TokenId>(1 + i % 200)}});
  return request;
}

/// (3, 4 * first id): of direction that tells inputs apart.
gen::FakeReply direction(const gen::Request& request) {
  return {.embedding = {3, 4 * static_cast<float>(request.prompt.front())}};
}

void wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
  REQUIRE(condition());
}

TEST_CASE("embeddings: vectors come in the order of inputs, at length 1, cut where asked") {
  Harness harness(gen::Fake::Delivery::kOwnThread);
  harness.script = direction;
  Told whole, cut;
  EmbeddingRequest request = wanting("a", 30);
  request.pooling = gen::Pooling::kLast;
  CHECK(*harness.service.embed(request, whole.sink()) == 30);
  const Vectors vectors = whole.vectors();
  REQUIRE(vectors.size() == 30);
  for (size_t i = 0; i < 30; ++i) {
    const float second = 4 * static_cast<float>(i + 1), length = std::hypot(3.0F, second);
    CHECK(vectors[i][0] == doctest::Approx(3 / length));
    CHECK(vectors[i][1] == doctest::Approx(second / length));
  }
  for (const gen::Request& sent : harness.fake.submitted()) {
    CHECK(sent.pooling == gen::Pooling::kLast);
    CHECK(sent.client == "c");
  }
  request.dimensions = 1;
  REQUIRE(harness.service.embed(request, cut.sink()).has_value());
  CHECK(cut.vectors()[3] == std::vector<float>{1});
}

TEST_CASE("embeddings: text is encoded as prompts are, and what does not fit is refused at once") {
  Harness harness(gen::Fake::Delivery::kOnDemand, 8);
  Told told;
  const auto refusal = [&](EmbeddingRequest request) {
    const auto taken = harness.service.embed(std::move(request), told.sink());
    REQUIRE_FALSE(taken.has_value());
    return taken.error();
  };
  EmbeddingRequest request{.id = "a"};
  request.inputs = {{std::string("hi")}, {std::vector<gen::TokenId>(9, 5)}};
  Error error = refusal(request);
  CHECK(error.code == ErrorCode::kTooLarge);
  CHECK(error.field == "input[1]");
  CHECK(error.message == "input[1] is too long: 9 tokens > 8 maximum");
  request.inputs = {{std::vector<gen::TokenId>{5, 320}}};
  error = refusal(request);
  CHECK(error.code == ErrorCode::kInvalid);
  CHECK(error.field == "input");
  request.inputs = {{std::vector<gen::TokenId>(8, 5)}};  // the whole context: no answer follows
  CHECK(*harness.service.embed(request, told.sink()) == 8);
  CHECK(refusal(request).code == ErrorCode::kConflict);
  CHECK(harness.service.cancel("a"));
}

TEST_CASE("embeddings: of many inputs a few are with the generator, and requests take turns") {
  Harness harness;
  harness.script = direction;
  Told first, second;
  const auto submitted = [&] { return harness.fake.submitted().size(); };
  REQUIRE(harness.service.embed(wanting("a", 100), first.sink()).has_value());
  wait_until([&] { return submitted() == Embedder::kMostInFlight; });
  REQUIRE(harness.service.embed(wanting("b", 3), second.sink()).has_value());
  wait_until([&] { return submitted() == Embedder::kMostInFlight + 3; });
  size_t most = 0;
  while (!first.has_ended()) {
    if (!harness.fake.step()) std::this_thread::sleep_for(1ms);
    most = std::max(most, harness.fake.running());
  }
  CHECK(most <= Embedder::kMostInFlight + 3);
  CHECK(first.vectors().size() == 100);
  CHECK(second.vectors().size() == 3);
}

TEST_CASE(
    "embeddings: a full queue holds a request up that has begun, and refuses one that has not") {
  Harness harness(gen::Fake::Delivery::kOwnThread);
  std::atomic<int> asked = 0;
  harness.script = [&](const gen::Request& request) {
    gen::FakeReply reply = direction(request);
    if (++asked % 3 == 0) reply.refusal = Error{ErrorCode::kBusy, "the queue is full"};
    return reply;
  };
  Told told, refused;
  REQUIRE(harness.service.embed(wanting("a", 40), told.sink()).has_value());
  const Vectors vectors = told.vectors();
  for (size_t i = 1; i < 40; ++i) CHECK(vectors[i][0] < vectors[i - 1][0]);
  harness.script = [](const gen::Request&) {
    return gen::FakeReply{.refusal = Error{ErrorCode::kBusy, "the queue is full"}};
  };
  REQUIRE(harness.service.embed(wanting("b", 40), refused.sink()).has_value());
  CHECK(refused.error().code == ErrorCode::kBusy);
}

TEST_CASE("embeddings: one failure ends the request and cancels its other inputs") {
  Harness harness;
  harness.script = [](const gen::Request& request) {
    gen::FakeReply reply = direction(request);
    if (request.prompt.front() == 3) reply.failure = Error{ErrorCode::kDeadline, "too late"};
    reply.hangs = request.prompt.front() != 3;
    return reply;
  };
  Told told;
  REQUIRE(harness.service.embed(wanting("a", 5), told.sink()).has_value());
  wait_until([&] { return harness.fake.submitted().size() == 5; });
  while (!told.has_ended()) harness.fake.step();
  CHECK(told.error().code == ErrorCode::kDeadline);
  wait_until([&] { return harness.fake.cancelled().size() >= 4; });
  while (harness.fake.step()) {
  }
  CHECK(harness.fake.running() == 0);
  CHECK_FALSE(harness.service.cancel("a"));
}

TEST_CASE("embeddings: a cancel ends it now, and a stop ends what runs") {
  Told cancelled, stopped;
  {
    Harness harness;
    harness.script = direction;
    REQUIRE(harness.service.embed(wanting("a", 20), cancelled.sink()).has_value());
    REQUIRE(harness.service.embed(wanting("b", 20), stopped.sink()).has_value());
    wait_until([&] { return harness.fake.submitted().size() == 2 * Embedder::kMostInFlight; });
    CHECK(harness.service.cancel("a"));
    CHECK(cancelled.error().code == ErrorCode::kCancelled);
    CHECK(harness.fake.cancelled().size() == Embedder::kMostInFlight);
  }
  CHECK(stopped.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("embeddings: vectors without a finite length and too many dimensions are errors") {
  CHECK(unit_vector({3, 4}, {})->front() == doctest::Approx(0.6));
  CHECK(unit_vector({0, 0}, {}).error().code == ErrorCode::kInternal);
  CHECK(unit_vector({NAN, 1}, {}).error().code == ErrorCode::kInternal);
  const Error error = unit_vector({1, 2}, 3).error();
  CHECK(error.code == ErrorCode::kInvalid);
  CHECK(error.message == "'dimensions' must be from 1 to 2, not 3");
}

}  // namespace
}  // namespace tandem::chat
