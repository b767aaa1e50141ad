// The state of the Responses wire where something goes wrong beside it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("responses state: a conversation of 200 responses is read in one transaction") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  std::string last;
  const auto next = [&] {
    Json body{{"input", "x"}, {"store", true}};
    if (!last.empty()) body["previous_response_id"] = last;
    last = server.post("/responses", dump(body))["id"];
  };
  for (int i = 0; i < 200; ++i) next();
  std::atomic<int> commits = 0;
  const auto count = [](void* counter) {
    ++*static_cast<std::atomic<int>*>(counter);
    return 0;
  };
  REQUIRE(server.store().database().use([&](sqlite3* db) -> Status {
    sqlite3_commit_hook(db, count, &commits);
    return {};
  }));
  server.post("/responses", dump(Json{{"input", "x"}, {"previous_response_id", last}}));
  CHECK(server.messages().size() == 401);
  // One of the last response, one of all before it.
  CHECK(commits == 2);
}

/// Makes every write of this test's process fail, as a full disk does, while it lives.
class FullDisk {
 public:
  explicit FullDisk(store::Store& store) : store_(store) { set("1"); }
  ~FullDisk() { set("0"); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void set(const std::string& on) {
    CHECK(store_.database().use([&](sqlite3* db) -> Status {
      sqlite3_exec(db, ("PRAGMA query_only=" + on).c_str(), nullptr, nullptr, nullptr);
      return {};
    }));
  }

  store::Store& store_;
};

std::string metrics_of(const StateServer& server) {
  return server.client().get("/metrics").value().body;
}

TEST_CASE("responses state: what could not be written says so itself, whole and streamed") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const auto check = [&](const Json& response) {
    CHECK(response["status"] == "completed");
    CHECK(response["store"] == false);
    CHECK(response["output"][0]["content"][0]["text"] == "Answer");
    REQUIRE(response["warnings"].size() == 1);
    CHECK(response["warnings"][0]["code"] == "not_stored");
    const Json refused = server.post(
        "/responses", dump(Json{{"input", "x"}, {"previous_response_id", response["id"]}}), 404);
    CHECK(refused["error"]["code"] == "previous_response_not_found");
  };
  {
    const FullDisk full(server.store());
    check(server.post("/responses", R"({"input":"x","store":true})"));
    const auto events =
        events_of(server.client()
                      .post("/v1/responses", R"({"input":"x","store":true,"stream":true})")
                      .value()
                      .body);
    CHECK(events.back().event == "response.completed");
    check(Json::parse(events.back().data)["response"]);
    server.post("/responses", R"({"input":"x","background":true})", 500);
  }
  CHECK(metrics_of(server).find("tandem_warnings_total{code=\"not_stored\"} 2\n") !=
        std::string::npos);
  CHECK(server.post("/responses", R"({"input":"x","store":true})")["store"] == true);
}

TEST_CASE("responses state: too much that waits is told to the client too") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}), {}, {}, {.max_bytes = 20'000});
  const std::string body =
      fmt::format(R"({{"input":"{}","store":true}})", std::string(30'000, 'x'));
  const Json response = server.post("/responses", body);
  CHECK(response["store"] == false);
  CHECK(response["warnings"][0]["code"] == "not_stored");
}

TEST_CASE("responses state: metrics never wait for the database") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}));
  server.post("/responses", R"({"input":"x","store":true})");
  server.store().queue().settle();  // what is there was counted
  CHECK(metrics_of(server).find("tandem_state_entries{kind=\"responses\"} 1\n") !=
        std::string::npos);
  std::promise<void> begun;
  std::promise<void> done;
  std::thread slow([&] {
    CHECK(server.store().database().use([&](sqlite3*) -> Status {
      begun.set_value();
      done.get_future().wait();
      return {};
    }));
  });
  begun.get_future().wait();
  // The database is held until they have answered.
  for (int i = 0; i < 3; ++i) {
    CHECK(metrics_of(server).find("tandem_state_entries{kind=\"responses\"} 1\n") !=
          std::string::npos);
  }
  done.set_value();
  slow.join();
}

TEST_CASE("responses state: readers that would miss what waits are told to come again") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}), {}, {}, {.read_wait = milliseconds(100)});
  const std::string kept = server.post("/responses", R"({"input":"x","store":true})")["id"];
  const std::string talk = server.post("/conversations", "{}")["id"];
  std::promise<void> slow;
  REQUIRE(server.store().queue().post(1, [&]() -> Status {
    slow.get_future().wait();
    return {};
  }));
  const auto busy = [&](const Result<net::Response>& got) {
    CHECK(got->status == 429);
    CHECK(Json::parse(got->body)["error"]["code"] == "queue_full");
  };
  const auto client = server.client();
  for (const std::string& path :
       {"/v1/responses/" + kept, "/v1/responses/" + kept + "/input_items",
        "/v1/conversations/" + talk, "/v1/conversations/" + talk + "/items"}) {
    busy(client.get(path));
  }
  busy(client.erase("/v1/responses/" + kept));
  for (const Json& body :
       {Json{{"input", "x"}, {"previous_response_id", kept}},
        Json{{"input", "x"}, {"conversation", talk}}, Json{{"input", "x"}, {"background", true}}}) {
    busy(client.post("/v1/responses", dump(body)));
  }
  slow.set_value();
  server.store().queue().settle();
  server.get("/responses/" + kept);
  server.get("/conversations/" + talk);
}

TEST_CASE("responses state: what another server erases while it is made is gone, and ends") {
  const store::TestFolder folder;
  for (const bool purge : {false, true}) {
    StateServer server(folder);
    StateServer beside(folder);
    const std::string id = server.post("/responses", R"({"input":"x","background":true})")["id"];
    CHECK(server.get("/responses/" + id)["status"] == "queued");
    if (purge) {
      REQUIRE(beside.store().database().purge());
    } else {
      CHECK(beside.client().erase("/v1/responses/" + id).value().status == 200);
    }
    server.get("/responses/" + id, 404);
    server.get("/responses/" + id + "?stream=true", 404);
    server.post("/responses/" + id + "/cancel", "", 404);
    server.post("/responses", dump(Json{{"input", "x"}, {"previous_response_id", id}}), 404);
    auto answer = kept_answer({"a secret answer"});
    // It is ended once that is seen.
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    bool is_cancelled = false;
    while (!is_cancelled && std::chrono::steady_clock::now() < limit) {
      server.service().emit(id, answer[0]);
      is_cancelled = server.service().wait_for_cancel(id, milliseconds(100));
    }
    CHECK(is_cancelled);
    server.service().emit(id, answer[1]);
    REQUIRE(server.store().queue().settle(seconds(10)));
    server.get("/responses/" + id, 404);
    CHECK_FALSE(folder.holds("secret"));
  }
}

TEST_CASE("responses state: a damaged file costs what was kept, and the server goes on") {
  const store::TestFolder folder;
  StateServer server(folder, says({std::string(3000, 'x')}));
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) {
    ids.push_back(server.post("/responses", R"({"input":"x","store":true})")["id"]);
  }
  store::let_go(server.store().database());
  const auto file = server.store().database().file();
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out).seekp(65536)
      << std::string(std::filesystem::file_size(file) - 65536, '#');
  std::string told;
  for (const std::string& id : ids) {
    const auto got = server.client().get("/v1/responses/" + id).value();
    CHECK((got.status == 200 || got.status == 404 || got.status == 500));
    if (got.status == 500) told = Json::parse(got.body)["error"]["message"];
  }
  CHECK(told.find("set aside, and a new one begun") != std::string::npos);
  server.get("/responses/" + ids.front(), 404);
  const Json next = server.post("/responses", R"({"input":"x","store":true})");
  CHECK(server.get("/responses/" + next["id"].get<std::string>()) == next);
  CHECK(metrics_of(server).find("tandem_state_damaged_total 1\n") != std::string::npos);
}

}  // namespace
}  // namespace tandem::protocol
