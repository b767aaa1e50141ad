// The state of the Responses wire over loopback, in front of a scripted service.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("responses state: what was asked for with store is there, after a restart too") {
  const store::TestFolder folder;
  Json whole;
  {
    StateServer server(folder, says({"Hel", "lo"}));
    whole = server.post("/responses", R"({"input":"hi","store":true,"metadata":{"a":"b"}})");
    CHECK(whole["store"] == true);
    CHECK(server.get("/responses/" + whole["id"].get<std::string>()) == whole);
    CHECK(whole["metadata"]["a"] == "b");
  }
  StateServer server(folder, says({"Again"}));
  const std::string id = whole["id"];
  CHECK(server.get("/responses/" + id) == whole);
  CHECK(server.get("/responses/" + id + "/input_items")["data"][0]["content"][0]["text"] == "hi");
}

TEST_CASE("responses state: without store nothing is kept") {
  const store::TestFolder folder;
  StateServer server(folder, says({"A secret word"}));
  for (const char* fields : {"", R"(,"store":false)"}) {
    const Json whole =
        server.post("/responses", fmt::format(R"({{"input":"my secret"{}}})", fields));
    CHECK(whole["store"] == false);
    const Json gone = server.get("/responses/" + whole["id"].get<std::string>(), 404);
    CHECK(gone["error"]["code"] == "not_found");
    server.post("/responses",
                fmt::format(R"({{"input":"x","previous_response_id":{}}})", whole["id"].dump()),
                404);
  }
  CHECK_FALSE(folder.holds("secret"));
}

TEST_CASE("responses state: a conversation goes on by the id of its last response") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const Json first =
      server.post("/responses", R"({"input":"one","instructions":"Be brief","store":true})");
  const std::string body =
      R"({{"input":"{}","store":true,"stream":true,"previous_response_id":{}}})";
  const auto streamed =
      server.client()
          .post("/v1/responses", fmt::format(fmt::runtime(body), "two", first["id"].dump()))
          .value();
  const Json second = Json::parse(events_of(streamed.body).back().data)["response"];
  CHECK(second["previous_response_id"] == first["id"]);
  // Instructions are those of one request.
  CHECK(server.messages() == Json::parse(R"([{"role":"user","content":"one"},
    {"role":"assistant","content":"Answer"},{"role":"user","content":"two"}])"));
  server.client()
      .post("/v1/responses", fmt::format(fmt::runtime(body), "three", second["id"].dump()))
      .value();
  CHECK(server.messages().size() == 5);
  const Json items = server.get("/responses/" + second["id"].get<std::string>() +
                                "/input_items?order=asc&limit=2");
  CHECK(items["data"][0]["content"][0]["text"] == "one");
  CHECK(items["data"][1]["content"][0]["text"] == "Answer");
  CHECK(items["has_more"] == true);
  const Json last =
      server.get("/responses/" + second["id"].get<std::string>() +
                 "/input_items?order=asc&after=" + items["last_id"].get<std::string>());
  CHECK(last["data"].size() == 1);
  CHECK(last["data"][0]["content"][0]["text"] == "two");
}

TEST_CASE("responses state: no input is a word too where a conversation goes on") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const Json refused = server.post("/responses", R"({"model":"m"})", 400);
  CHECK(refused["error"]["param"] == "input");
  CHECK(refused["error"]["message"].get<std::string>().find("previous_response_id") !=
        std::string::npos);
  const Json first = server.post("/responses", R"({"input":"one","store":true})");
  server.post("/responses", dump(Json{{"previous_response_id", first["id"]}}));
  CHECK(server.messages() == Json::parse(R"([{"role":"user","content":"one"},
                                             {"role":"assistant","content":"Answer"}])"));
  // Clients ask so whether somebody is there.
  for (const char* empty : {R"({"input":[]})", R"({"input":""})"}) {
    server.post("/responses", empty);
    CHECK(server.messages() == Json::parse(R"([{"role":"user","content":""}])"));
  }
}

TEST_CASE("responses state: a conversation whose beginning is gone says so") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const auto next = [&](const Json& previous, int status = 200) {
    return server.post(
        "/responses",
        fmt::format(R"({{"input":"x","store":true{}}})",
                    previous.is_null() ? "" : ",\"previous_response_id\":" + previous.dump()),
        status);
  };
  const Json first = next(nullptr)["id"];
  const Json second = next(first)["id"];
  const Json gone =
      Json::parse(server.client().erase("/v1/responses/" + first.get<std::string>()).value().body);
  CHECK(gone == Json{{"id", first}, {"object", "response"}, {"deleted", true}});
  const Json refused = next(second, 404);
  CHECK(refused["error"]["code"] == "previous_response_not_found");
  CHECK(refused["error"]["param"] == "previous_response_id");
  CHECK(refused["error"]["message"].get<std::string>().find(first) != std::string::npos);
  CHECK(server.client().erase("/v1/responses/" + first.get<std::string>()).value().status == 404);
}

TEST_CASE("responses state: references to items stand for what is kept") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const Json first = server.post("/responses", R"({"input":"one","store":true})");
  const std::string item = first["output"][0]["id"];
  server.post("/responses", fmt::format(R"({{"input":[{{"type":"item_reference","id":"{}"}},
                                        {{"role":"user","content":"two"}}]}})",
                                        item));
  CHECK(server.messages() == Json::parse(R"([{"role":"assistant","content":"Answer"},
                                             {"role":"user","content":"two"}])"));
  Json many = Json::array();
  const Json long_one = server.post(
      "/responses", dump(Json{{"input", std::string(size_t{1} << 20, 'x')}, {"store", true}}));
  const Json listed =
      server.get("/responses/" + long_one["id"].get<std::string>() + "/input_items")["data"];
  for (int i = 0; i < 33; ++i) {
    many.push_back(Json{{"type", "item_reference"}, {"id", listed[0]["id"]}});
  }
  const Json refused = server.post("/responses", dump(Json{{"input", many}}), 400);
  CHECK(refused["error"]["param"] == "input");
  const Json unknown =
      server.post("/responses", R"({"input":[{"type":"item_reference","id":"msg_x"}]})", 404);
  CHECK(unknown["error"]["param"] == "input[0]");
}

TEST_CASE("responses state: keys see nothing of each other") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}), {"alpha", "beta"});
  const auto made = server.client("alpha").post(
      "/v1/responses", R"({"input":"one","store":true,"background":true})");
  const Json whole = Json::parse(made.value().body);
  const std::string id = whole["id"];
  const std::string path = "/v1/responses/" + id;
  const auto other = server.client("beta");
  CHECK(server.client("alpha").get(path).value().status == 200);
  CHECK(other.get(path).value().status == 404);
  CHECK(other.get(path + "?stream=true").value().status == 404);
  CHECK(other.get(path + "/input_items").value().status == 404);
  CHECK(other.post(path + "/cancel", "").value().status == 404);
  CHECK(other.erase(path).value().status == 404);
  CHECK(
      other.post("/v1/responses", fmt::format(R"({{"input":"x","previous_response_id":"{}"}})", id))
          .value()
          .status == 404);
  CHECK(server.client("alpha").get(path).value().status == 200);
}

TEST_CASE("responses state: a background response goes on without its client") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Json queued = server.post("/responses", R"({"input":"one","background":true})");
  CHECK(queued["status"] == "queued");
  CHECK(queued["background"] == true);
  CHECK(queued["store"] == true);
  const std::string id = queued["id"];
  auto answer = kept_answer({"Hel", "lo"});
  server.service().emit(id, answer[0]);
  CHECK(server.get("/responses/" + id)["status"] == "in_progress");
  const Json early = server.post(
      "/responses", fmt::format(R"({{"input":"x","previous_response_id":"{}"}})", id), 400);
  CHECK(early["error"]["message"].get<std::string>().find("in_progress") != std::string::npos);
  server.service().emit(id, answer[1]);
  server.service().emit(id, answer[2]);
  const Json whole = server.ended(id);
  CHECK(whole["status"] == "completed");
  CHECK(whole["output"][0]["content"][0]["text"] == "Hello");
  CHECK(server.get("/responses/" + id + "?stream=true", 400)["error"]["param"] == "response_id");
}

TEST_CASE("responses state: a background response is cancelled by its id") {
  const store::TestFolder folder;
  StateServer server(folder);
  const std::string id = server.post("/responses", R"({"input":"x","background":true})")["id"];
  std::thread ends([&] {
    REQUIRE(server.service().wait_for_cancel(id, seconds(10)));
    server.service().emit(
        id, {.choice = 0,
             .body = chat::Failed{.error = {ErrorCode::kCancelled, "cancelled"}, .usage = {}}});
  });
  const Json cancelled = server.post("/responses/" + id + "/cancel", "");
  ends.join();
  CHECK(cancelled["status"] == "cancelled");
  CHECK(server.post("/responses/" + id + "/cancel", "")["status"] == "cancelled");
  StateServer other(folder, says({"x"}));
  const std::string plain = other.post("/responses", R"({"input":"x","store":true})")["id"];
  other.post("/responses/" + plain + "/cancel", "", 400);
  other.post("/responses/resp_none/cancel", "", 404);
}

TEST_CASE("responses state: events are the same watched, resumed at any place, and kept") {
  const store::TestFolder folder;
  std::optional<StateServer> server(std::in_place, folder,
                                    says({"one ", "two ", "three ", "four"}));
  const auto first = server->client()
                         .post("/v1/responses", R"({"input":"x","background":true,"stream":true})")
                         .value();
  const auto all = events_of(first.body);
  REQUIRE(all.size() > 8);
  CHECK(all[0].event == "response.created");
  CHECK(all[1].event == "response.queued");
  CHECK(all[2].event == "response.in_progress");
  CHECK(all.back().event == "response.completed");
  for (size_t i = 0; i < all.size(); ++i) CHECK(Json::parse(all[i].data)["sequence_number"] == i);
  const std::string id = Json::parse(all[0].data)["response"]["id"];
  for (int restart = 0; restart < 2; ++restart) {
    for (size_t after = 0; after < all.size(); ++after) {
      const auto rest =
          server->client()
              .get(fmt::format("/v1/responses/{}?stream=true&starting_after={}", id, after))
              .value();
      CHECK(events_of(rest.body) ==
            std::vector(all.begin() + static_cast<std::ptrdiff_t>(after) + 1, all.end()));
    }
    CHECK(events_of(server->client().get("/v1/responses/" + id + "?stream=true").value().body) ==
          all);
    server.emplace(folder);
  }
}

TEST_CASE("responses state: a long answer is watched from its beginning while it is made") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Json made = server.post(
      "/responses", R"({"input":"x","background":true,"metadata":{"k":"v"},"stream":false})");
  const std::string plain = made["id"];
  std::string id;
  std::string text;
  std::thread watch([&] {
    server.client()
        .stream("/v1/responses", R"({"input":"y","background":true,"stream":true})",
                [&](const net::SseEvent& event) {
                  if (!event.comment.empty()) return true;
                  const Json data = Json::parse(event.data);
                  if (data["type"] == "response.output_text.delta") {
                    text += data["delta"].get<std::string>();
                  }
                  return true;
                })
        .value();
  });
  id = server.service().wait_for_submission(2);
  const std::string word(20, 'w');
  std::string whole;
  for (int i = 0; i < 12'000; ++i) {  // events of three times what may wait for a client
    server.service().emit(
        id, {.choice = 0,
             .body = chat::Delta{.channel = chat::Channel::kText, .text = word, .logprobs = {}}});
    whole += word;
    if (i % 500 == 0) std::this_thread::sleep_for(milliseconds(5));
  }
  std::string late;
  std::thread later([&] {
    const auto got = server.client().get("/v1/responses/" + id + "?stream=true").value();
    for (const net::SseEvent& event : events_of(got.body)) {
      const Json data = Json::parse(event.data);
      if (data["type"] == "response.output_text.delta") late += data["delta"].get<std::string>();
    }
  });
  std::this_thread::sleep_for(milliseconds(50));
  server.service().emit(id, {.choice = 0, .body = chat::End{}});
  later.join();
  watch.join();
  CHECK(late == whole);
  CHECK(text == whole);
  server.service().emit(plain, {.choice = 0, .body = chat::End{}});
}

TEST_CASE("responses state: a restart in the middle leaves a failed response") {
  const store::TestFolder folder;
  std::string id;
  {
    StateServer server(folder);
    id = server.post("/responses", R"({"input":"x","background":true})")["id"];
    // Another server of the folder knows that this one lives.
    StateServer beside(folder);
    CHECK(beside.get("/responses/" + id)["status"] == "queued");
    beside.post("/responses/" + id + "/cancel", "", 409);
  }
  StateServer server(folder);
  const Json found = server.get("/responses/" + id);
  CHECK(found["status"] == "failed");
  CHECK(found["error"]["code"] == "server_error");
  CHECK(found["error"]["message"].get<std::string>().find("server ended") != std::string::npos);
}

TEST_CASE("responses state: what a background response is refused for is told at once") {
  const store::TestFolder folder;
  StateServer server(folder);
  server.service().refuse({ErrorCode::kBusy, "the queue is full"});
  server.post("/responses", R"({"input":"x","background":true})", 429);
  server.post("/responses", R"({"input":"x","background":true,"store":false})", 400);
}

TEST_CASE("responses state: a purge beside the server takes what is being made too") {
  const store::TestFolder folder;
  StateServer server(folder);
  const std::string id = server.post("/responses", R"({"input":"secret","background":true})")["id"];
  {
    const auto command = store::Database::open_existing({.folder = folder.state()});
    REQUIRE((*command)->purge());
  }
  for (const chat::Event& event : kept_answer({"a secret answer"}))
    server.service().emit(id, event);
  REQUIRE(server.store().queue().settle(seconds(10)));
  server.get("/responses/" + id, 404);
  CHECK_FALSE(folder.holds("secret"));
}

TEST_CASE("responses state: more than the bound is not kept, and the newest stay") {
  const store::TestFolder folder;
  StateServer server(folder, says({std::string(2000, 'x')}), {}, {.max_bytes = 16'080});
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(server.post("/responses", R"({"input":"x","store":true})")["id"]);
  }
  server.get("/responses/" + ids.front(), 404);
  server.get("/responses/" + ids.back());
  CHECK(
      server.client().get("/metrics")->body.find("tandem_state_entries{kind=\"responses\"} 3\n") !=
      std::string::npos);
}

TEST_CASE("responses state: input counts as what waits to be written, and its loss is counted") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}), {}, {}, {.max_bytes = 20'000});
  const auto post = [&](size_t size) -> std::string {
    const std::string body =
        fmt::format(R"({{"input":"{}","store":true}})", std::string(size, 'x'));
    return server.post("/responses", body)["id"];
  };
  const auto lost = [&](int count) {
    return server.client()
               .get("/metrics")
               ->body.find(fmt::format("tandem_state_lost_writes_total {}\n", count)) !=
           std::string::npos;
  };
  server.get("/responses/" + post(10'000));
  CHECK(lost(0));
  server.get("/responses/" + post(30'000), 404);
  CHECK(lost(1));
}

TEST_CASE("responses state: a record that cannot be read is an error, and no crash") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}));
  const store::BlobTable table(server.store().database(), "responses");
  for (const char* record :
       {"", "[]", "{}", R"({"response":7,"input":[]})",
        R"({"response":{"id":1,"status":2,"output":3},"input":[],"previous":"",
                                 "server":"","background":false,"streamed":false,"began":0})",
        R"({"response":{"id":"resp_x","status":"completed","output":[{"id":7}]},
                                 "input":[],"previous":"","server":"","background":false,
                                 "streamed":false,"began":0})",
        R"({"response":{"id":"resp_x","status":"completed","output":[]},
                                 "input":["x"],"previous":"","server":"","background":false,
                                 "streamed":false,"began":0})"}) {
    REQUIRE(table.put("", "resp_x", record));
    CHECK(server.get("/responses/resp_x", 500)["error"]["code"] == "corrupt");
    server.post("/responses", R"({"input":"x","previous_response_id":"resp_x"})", 500);
  }
}

TEST_CASE("responses state: input tokens are those of the prompt") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}));
  CHECK(server.post("/responses/input_tokens", R"({"input":"hi"})") ==
        Json::parse(R"({"object":"response.input_tokens","input_tokens":7})"));
  server.post("/responses/input_tokens", "{}");
  server.post("/responses/input_tokens", R"({"input":7})", 400);
}

TEST_CASE("responses state: a server that keeps nothing says so") {
  SteadyClock clock;
  chat::FakeService service({.id = "m", .max_context = 4096}, says({"x"}));
  Api api(service, clock, {});
  net::Router router;
  api.add_routes(router);
  const auto server = net::Server::start({}, std::move(router)).value();
  const auto client = net::Client::make(server->url()).value();
  const auto stored = client.post("/v1/responses", R"({"input":"x","store":true})").value();
  const Json whole = Json::parse(stored.body);
  CHECK(whole["store"] == false);
  CHECK(whole["warnings"][0]["code"] == "not_stored");
  CHECK(client.post("/v1/responses", R"({"input":"x","background":true})").value().status == 400);
  CHECK(client.get("/v1/responses/resp_x").value().status == 404);
  CHECK(client.erase("/v1/responses/resp_x").value().status == 404);
}

}  // namespace
}  // namespace tandem::protocol
