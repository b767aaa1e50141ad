#include "app/status_text.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("status text: names instances, ranks with pids and what they hold, pages and requests") {
  const Json status = Json::parse(R"({
    "model": "m", "max_context": 8192,
    "instances": [{"name": "a", "state": "ready", "epoch": 3, "split": "tensor", "trouble": "rank 1 was killed",
      "loading": "", "lost_epochs": 2,
      "engine": {"running": 1, "waiting": 2, "paused": 3, "pages": {"used": 4, "cached": 5, "free": 6, "tokens": 32}},
      "ranks": [{"rank": 0, "state": "ready", "pid": 77, "steps": 9,
                 "memory": {"weight_bytes": 10485760, "cache_bytes": 20971520, "resident_bytes": 31457280}}]}],
    "requests": [{"id": "cmpl-1", "phase": "decode", "prefilled_tokens": 5, "prompt_tokens": 5, "cached_tokens": 4,
                  "emitted_tokens": 3}]})");
  CHECK(status_text("http://h:1", status) ==
        "http://h:1 serves m, context 8192 tokens\n"
        "instance a: ready, epoch 3 (2 lost), tensor split over 1 rank\n"
        "  last trouble: rank 1 was killed\n"
        "  rank 0: ready, pid 77, 9 steps; 30 MiB resident, 10 MiB of weights, 20 MiB of cache "
        "pool\n"
        "  cache pages of 32 tokens: 4 used, 5 kept for reuse, 6 free\n"
        "  engine: 1 running, 2 waiting, 3 paused\n"
        "requests running: 1\n"
        "  cmpl-1 decode: 5 of 5 prompt tokens, 4 cached, 3 emitted\n");
}

TEST_CASE("status text: window pages and recurrent states have lines where a model has them") {
  const Json status = Json::parse(R"({"instances": [{"name": "a", "engine": {
      "pages": {"used": 4, "cached": 5, "free": 6, "tokens": 32},
      "window_pages": {"used": 1, "cached": 2, "free": 3, "left": 7},
      "states": {"used": 8, "cached": 9, "free": 10}}}]})");
  const std::string text = status_text("u", status);
  CHECK(text.find("  window pages: 1 used, 2 kept for reuse, 3 free, 7 left behind\n") !=
        std::string::npos);
  CHECK(text.find("  recurrent states: 8 used, 9 kept for reuse, 10 free\n") != std::string::npos);
}

TEST_CASE("status text: a body of another server reads as nothing, not as a failure") {
  for (const char* body : {"{}", "[]", R"({"instances": [7, {"ranks": "none"}], "requests": 1})"}) {
    CAPTURE(body);
    CHECK(status_text("u", Json::parse(body)).find("u serves ,") == 0);
  }
}

TEST_CASE("status text: a server without ranks says that it plays a script") {
  const auto status = nlohmann::ordered_json::parse(R"J({"model": "m", "max_context": 9,
      "instances": [{"name": "script", "scripted": true, "state": "ready", "ranks": []}]})J");
  const std::string text = status_text("http://x", status);
  CHECK(text.find("instance script: ready, plays a script\n") != std::string::npos);
  CHECK(text.find("rank") == std::string::npos);
}

}  // namespace
}  // namespace tandem::app
