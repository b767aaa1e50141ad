#include "protocol/request_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "protocol/metrics.h"

namespace tandem::protocol {
namespace {

using std::chrono::milliseconds;

RequestRecord record(const std::string& id, uint32_t choices = 1) {
  RequestRecord out;
  out.id = id;
  out.endpoint = "chat";
  out.choices = choices;
  return out;
}

chat::Event progress(uint32_t done) { return {.choice = 0, .body = chat::Progress{done, 8}}; }
chat::Event delta(uint32_t choice = 0) { return {.choice = choice, .body = chat::Delta{}}; }
chat::Event ended(uint32_t choice = 0) {
  return {.choice = choice,
          .body = chat::End{.reason = chat::FinishReason::kStop,
                            .stop_text = {},
                            .usage = {.prompt_tokens = 8,
                                      .cached_tokens = 2 + choice,
                                      .completion_tokens = 5,
                                      .reasoning_tokens = 1}}};
}

TEST_CASE("request table: phases are measured one after another") {
  ManualClock clock;
  std::optional<RequestRecord> told;
  RequestTable table(clock, [&](const RequestRecord& request) { told = request; });
  REQUIRE(table.open(record("a")));
  CHECK_FALSE(table.open(record("a")));
  table.accept("a", {.prompt_tokens = 8});
  clock.advance(milliseconds(10));
  table.note("a", progress(4));
  clock.advance(milliseconds(20));
  table.note("a", delta());
  clock.advance(milliseconds(40));
  Json active = table.to_json()["active"][0];
  CHECK(active["phase"] == "decode");
  CHECK(active["queue_ms"] == 10.0);
  CHECK(active["prefill_ms"] == 20.0);
  CHECK(active["first_token_ms"] == 30.0);
  CHECK(active["decode_ms"] == 40.0);
  CHECK(active["prefilled_tokens"] == 4);
  table.note("a", ended());
  CHECK(table.running() == 0);
  const Json recent = table.to_json()["recent"][0];
  CHECK(recent["outcome"] == "finished");
  CHECK(recent["finish_reason"] == "stop");
  CHECK(recent["cached_tokens"] == 2);
  CHECK(recent["emitted_tokens"] == 5);
  REQUIRE(told);
  CHECK(told->reasoning_tokens == 1);
}

TEST_CASE("request table: it says where a request left what was known, without any text") {
  ManualClock clock;
  RequestTable table(clock);
  table.open(record("a"));
  CHECK(table.to_json()["active"][0]["divergence"] == nullptr);
  const chat::Divergence left{
      .message = 3, .role = "assistant", .reusable_tokens = 17, .known_tokens = 40};
  table.accept("a", {.prompt_tokens = 30, .divergence = left});
  const Json expected = {
      {"message", 3}, {"role", "assistant"}, {"reusable_tokens", 17}, {"known_tokens", 40}};
  CHECK(table.to_json()["active"][0]["divergence"] == expected);
  table.note("a", ended());
  CHECK(table.to_json()["recent"][0]["divergence"] == expected);
  // A generator may be faster than the one who asked it.
  table.open(record("b"));
  table.note("b", ended());
  table.accept("b", {.prompt_tokens = 30, .divergence = left});
  CHECK(table.to_json()["recent"][0]["divergence"] == expected);
}

TEST_CASE("request table: a request ends with its last choice, and a failure outweighs") {
  ManualClock clock;
  RequestTable table(clock);
  table.open(record("a", 2));
  table.note("a", delta(1));
  table.note("a", ended(1));
  CHECK(table.running() == 1);
  table.note(
      "a", {.choice = 0, .body = chat::Failed{.error = {ErrorCode::kPeerLost, "x"}, .usage = {}}});
  CHECK(table.running() == 0);
  CHECK(table.find("a")->outcome == Outcome::kFailed);
  CHECK(table.find("a")->finish_reason == "instance_lost");
  CHECK(table.find("a")->emitted_tokens == 5);
}

TEST_CASE("request table: it remembers the last hundred, the newest first") {
  ManualClock clock;
  RequestTable table(clock);
  for (int i = 0; i < 150; ++i) {
    table.open(record(fmt::format("r{}", i)));
    table.note(fmt::format("r{}", i), ended());
  }
  const Json recent = table.to_json()["recent"];
  CHECK(recent.size() == 100);
  CHECK(recent[0]["id"] == "r149");
  CHECK_FALSE(table.find("r49"));
  CHECK(table.find("r50"));
}

TEST_CASE("request table: silence counts only while requests run") {
  ManualClock clock;
  RequestTable table(clock);
  clock.advance(std::chrono::hours(1));
  CHECK(table.silence() == Duration::zero());
  table.open(record("a"));
  clock.advance(milliseconds(5));
  CHECK(table.silence() == milliseconds(5));
  table.open(record("b"));
  CHECK(table.silence() == milliseconds(5));
  table.note("b", progress(1));
  CHECK(table.silence() == Duration::zero());
  table.note("a", ended());
  table.note("b", ended());
  clock.advance(milliseconds(5));
  CHECK(table.silence() == Duration::zero());
}

TEST_CASE("metrics: every sample has its family, and names from clients are bounded") {
  ManualClock clock;
  Metrics metrics;
  RequestTable table(clock, [&](const RequestRecord& request) { metrics.ended(request); });
  table.open(record("a"));
  clock.advance(milliseconds(30));
  table.note("a", delta());
  table.note("a", ended());
  metrics.refused("chat", 429);
  for (int i = 0; i < 1000; ++i) metrics.ignored({fmt::format("f{}\n\"", i)});
  metrics.add([](MetricsText& out) {
    out.family("engine_steps_total", "counter", "Steps.");
    out.sample("engine_steps_total", {}, 3);
  });
  const std::string text = metrics.render(2);
  for (const char* line :
       {"tandem_requests_total{endpoint=\"chat\",outcome=\"finished\"} 1\n",
        "tandem_requests_refused_total{endpoint=\"chat\",status=\"429\"} 1\n",
        "tandem_requests_running 2\n", "tandem_prompt_tokens_total 8\n",
        "tandem_cached_tokens_total 2\n", "tandem_first_token_seconds_bucket{le=\"0.025\"} 0\n",
        "tandem_first_token_seconds_bucket{le=\"0.05\"} 1\n",
        "tandem_first_token_seconds_count 1\n",
        "tandem_ignored_fields_total{field=\"(others)\"} 936\n",
        "tandem_ignored_fields_total{field=\"f0\\n\\\"\"} 1\n", "engine_steps_total 3\n"}) {
    CAPTURE(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::protocol
