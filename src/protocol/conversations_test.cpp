// Conversations of the Responses wire over loopback.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

using std::chrono::seconds;

/// A conversation, and what clients do with it.
class Talk {
 public:
  explicit Talk(const StateServer& server, const std::string& body = "{}")
      : server_(server), object_(server.post("/conversations", body)) {}

  const Json& object() const { return object_; }
  std::string id() const { return object_["id"]; }
  std::string path() const { return "/conversations/" + id(); }
  Json items(const std::string& query = "?order=asc&limit=100") const {
    return server_.get(path() + "/items" + query);
  }
  /// The texts of its items, in order.
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    const Json listed = items();
    for (const Json& item : listed["data"]) out.push_back(item["content"][0]["text"]);
    return out;
  }
  Json say(Json body, int status = 200) const {
    if (!body.contains("conversation")) body["conversation"] = id();
    return server_.post("/responses", dump(body), status);
  }

 private:
  const StateServer& server_;
  const Json object_;
};

int erased(const StateServer& server, const std::string& path) {
  return server.client().erase("/v1" + path).value().status;
}

TEST_CASE("conversations: made, changed and erased, over a restart too") {
  const store::TestFolder folder;
  Json object;
  {
    StateServer server(folder);
    const Talk talk(server, R"({"metadata":{"a":"b"},"items":[{"role":"user","content":"hi"}]})");
    CHECK(talk.object()["object"] == "conversation");
    CHECK(talk.object()["metadata"] == Json{{"a", "b"}});
    CHECK(talk.object()["created_at"].is_number_integer());
    object = server.post(talk.path(), R"({"metadata":{"c":"d"}})");
    CHECK(object["metadata"] == Json{{"c", "d"}});
    CHECK(server.post(talk.path(), "{}", 400)["error"]["param"] == "metadata");
    CHECK(server.post(talk.path(), R"({"metadata":null})")["metadata"] == Json::object());
    CHECK(server.post(talk.path(), R"({"metadata":{"c":"d"}})") == object);
  }
  StateServer server(folder);
  const std::string path = "/conversations/" + object["id"].get<std::string>();
  CHECK(server.get(path) == object);
  CHECK(server.get(path + "/items")["data"][0]["content"][0]["text"] == "hi");
  CHECK(erased(server, path) == 200);
  CHECK(server.get(path, 404)["error"]["code"] == "not_found");
  CHECK(erased(server, path) == 404);
  server.get(path + "/items", 404);
  server.post(path, R"({"metadata":{}})", 404);
  server.post("/responses", dump(Json{{"input", "x"}, {"conversation", object["id"]}}), 404);
  CHECK_FALSE(folder.holds("hi\""));
}

TEST_CASE("conversations: items are added, listed, found and taken out") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server);
  const Json added = server.post(talk.path() + "/items", R"({"items":[
      {"role":"user","content":"one"},{"type":"message","role":"assistant","content":"two"},
      {"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]})");
  CHECK(added["object"] == "list");
  REQUIRE(added["data"].size() == 3);
  CHECK(added["first_id"] == added["data"][0]["id"]);
  CHECK(added["last_id"] == added["data"][2]["id"]);
  CHECK(added["data"][0]["status"] == "completed");
  CHECK(added["data"][1]["content"][0]["type"] == "output_text");
  const Json newest = talk.items("?limit=2");
  CHECK(newest["data"][0] == added["data"][2]);
  CHECK(newest["has_more"] == true);
  CHECK(talk.items("?limit=2&after=" + newest["last_id"].get<std::string>())["data"] ==
        Json::array({added["data"][0]}));
  const std::string second = talk.path() + "/items/" + added["data"][1]["id"].get<std::string>();
  CHECK(server.get(second) == added["data"][1]);
  CHECK(erased(server, second) == 200);
  CHECK(erased(server, second) == 404);
  CHECK(server.get(second, 404)["error"]["param"] == "item_id");
  CHECK(talk.items()["data"].size() == 2);
  // Nothing of what cannot be taken is there.
  server.post(talk.path() + "/items", "{}", 400);
  const Json refused =
      server.post(talk.path() + "/items",
                  R"({"items":[{"role":"user","content":"x"},{"role":"nobody"}]})", 400);
  CHECK(refused["error"]["param"] == "items[1].role");
  Json many = Json::array();
  for (int i = 0; i < 21; ++i) many.push_back(Json{{"role", "user"}, {"content", "x"}});
  server.post(talk.path() + "/items", dump(Json{{"items", many}}), 400);
  CHECK(talk.items()["data"].size() == 2);
}

TEST_CASE("conversations: an id stays that of its item, and nothing else is said to be kept") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const Talk talk(server, R"({"items":[{"id":"msg_1","role":"user","content":"old"}]})");
  const auto item = [](const char* id, const char* text) {
    return Json{{"id", id}, {"role", "user"}, {"content", text}};
  };
  const auto add = [&](const Json& items, int status) {
    return server.post(talk.path() + "/items", dump(Json{{"items", items}}), status);
  };
  const Json refused = add({item("msg_2", "new"), item("msg_1", "new")}, 400);
  CHECK(refused["error"]["param"] == "items[1].id");
  CHECK(refused["error"]["message"].get<std::string>().find("\"msg_1\"") != std::string::npos);
  CHECK(add({item("msg_2", "a"), item("msg_2", "b")}, 400)["error"]["param"] == "items[1].id");
  server.post("/conversations", dump(Json{{"items", {item("m", "a"), item("m", "b")}}}), 400);
  CHECK(talk.texts() == std::vector<std::string>{"old"});
  // Sent again, as it is or with what is absent written out, it is there once.
  const Json kept = talk.items()["data"][0];
  Json again{{"name", nullptr}, {"content", kept["content"]}, {"role", "user"}, {"id", "msg_1"}};
  for (const Json& same : {item("msg_1", "old"), kept, again}) {
    CHECK(add(Json::array({same}), 200)["data"] == Json::array({kept}));
  }
  CHECK(add({item("msg_2", "a"), item("msg_2", "a")}, 200)["data"].size() == 1);
  CHECK(talk.texts() == std::vector<std::string>{"old", "a"});
  // A response is shown what it was sent, and says what of it is not kept.
  const Json told = talk.say({{"input", {item("msg_1", "new"), item("msg_2", "a")}}});
  REQUIRE(told["warnings"].size() == 1);
  CHECK(told["warnings"][0]["code"] == "item_not_added");
  CHECK(told["warnings"][0]["message"].get<std::string>().find("input[0]") != std::string::npos);
  CHECK(server.messages()[2]["content"] == "new");
  CHECK(talk.texts() == std::vector<std::string>{"old", "a", "Answer"});
  CHECK_FALSE(
      server.post("/responses", dump(Json{{"input", {item("msg_1", "x")}}})).contains("warnings"));
}

TEST_CASE("conversations: fields that another path takes are refused by name") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server);
  CHECK(server.post(talk.path(), R"({"metadata":{},"items":[]})", 400)["error"]["param"] ==
        "items");
  CHECK(server.post(talk.path() + "/items", R"({"metadata":{},"items":[]})",
                    400)["error"]["param"] == "metadata");
  // What nobody knows is counted, as everywhere.
  server.post(talk.path(), R"({"metadata":{},"colour":"red"})");
  CHECK(server.client().get("/metrics")->body.find("field=\"colour\"") != std::string::npos);
}

TEST_CASE("conversations: a record that cannot be read is an error, and can be erased") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}));
  const store::BlobTable table(server.store().database(), "conversations");
  const std::string id = "conv_x";
  for (const char* items : {R"([{"id":7}])", R"(["x"])", R"([{"role":"user"}])", "{}"}) {
    REQUIRE(table.put("", id,
                      fmt::format(R"({{"conversation":{{"id":"{}"}},"items":{}}})", id, items)));
    CHECK(server.get("/conversations/" + id, 500)["error"]["code"] == "corrupt");
    server.post("/conversations/" + id + "/items", R"({"items":[{"role":"user","content":"x"}]})",
                500);
    server.post("/responses", dump(Json{{"input", "x"}, {"conversation", id}}), 500);
    CHECK(erased(server, "/conversations/" + id) == 200);
  }
  CHECK(server.store().database().damaged() == 0);
}

TEST_CASE("conversations: responses go on with one and add to it, stored or not, streamed or not") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}));
  const Talk talk(server, R"({"items":[{"role":"developer","content":"Be brief"}]})");
  const Json first = talk.say({{"input", "one"}});
  CHECK(first["conversation"] == Json{{"id", talk.id()}});
  CHECK(first["store"] == false);
  const auto streamed =
      server.client().post("/v1/responses", dump(Json{{"input", "two"},
                                                      {"stream", true},
                                                      {"store", true},
                                                      {"conversation", {{"id", talk.id()}}}}));
  const Json second = Json::parse(events_of(streamed->body).back().data)["response"];
  CHECK(second["conversation"]["id"] == talk.id());
  CHECK(server.messages() == Json::parse(R"([{"role":"developer","content":"Be brief"},
      {"role":"user","content":"one"},{"role":"assistant","content":"Answer"},
      {"role":"user","content":"two"}])"));
  CHECK(talk.texts() == std::vector<std::string>{"Be brief", "one", "Answer", "two", "Answer"});
  CHECK(talk.items()["data"][4]["id"] == second["output"][0]["id"]);
  // A reference to an item of it is that item, and adds nothing.
  talk.say({{"input", {{{"type", "item_reference"}, {"id", second["output"][0]["id"]}}}}});
  CHECK(talk.texts().size() == 6);
  // By its last response it cannot be gone on with: what came before would be lost.
  const Json refused = server.post(
      "/responses", dump(Json{{"input", "x"}, {"previous_response_id", second["id"]}}), 400);
  CHECK(refused["error"]["message"].get<std::string>().find(talk.id()) != std::string::npos);
  CHECK(server.post("/responses/input_tokens",
                    dump(Json{{"conversation", talk.id()}}))["input_tokens"] == 7);
}

TEST_CASE("conversations: a background response adds to one when it has ended") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server);
  const std::string id = talk.say({{"input", "one"}, {"background", true}})["id"];
  CHECK(talk.texts().empty());
  for (const chat::Event& event : kept_answer({"Answer"})) server.service().emit(id, event);
  CHECK(server.ended(id)["conversation"]["id"] == talk.id());
  CHECK(talk.texts() == std::vector<std::string>{"one", "Answer"});
}

chat::Event failure(ErrorCode code) {
  return {.choice = 0, .body = chat::Failed{.error = {code, "it broke"}, .usage = {}}};
}

TEST_CASE("conversations: what was cancelled leaves nothing in one") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server);
  const std::string background = talk.say({{"input", "one"}, {"background", true}})["id"];
  server.service().emit(background, kept_answer({"Answer"})[0]);
  std::thread ends([&] {
    REQUIRE(server.service().wait_for_cancel(background, seconds(10)));
    server.service().emit(background, failure(ErrorCode::kCancelled));
  });
  CHECK(server.post("/responses/" + background + "/cancel", "")["status"] == "cancelled");
  ends.join();
  // The same of one whose client waits for it.
  std::thread client([&] { talk.say({{"input", "two"}, {"store", true}}, 499); });
  const std::string waited = server.service().wait_for_submission(2);
  server.service().emit(waited, kept_answer({"Answer"})[0]);
  server.post("/stop", dump(Json{{"request_id", waited}}));
  CHECK(server.service().wait_for_cancel(waited, seconds(10)));
  server.service().emit(waited, failure(ErrorCode::kCancelled));
  client.join();
  CHECK(talk.texts().empty());
}

TEST_CASE("conversations: what failed leaves nothing in one") {
  const store::TestFolder folder;
  StateServer server(folder, [](const chat::Request&) {
    return std::vector<chat::Event>{failure(ErrorCode::kIo)};
  });
  const Talk talk(server);
  talk.say({{"input", "one"}}, 500);
  const auto streamed = server.client().post(
      "/v1/responses", dump(Json{{"input", "x"}, {"stream", true}, {"conversation", talk.id()}}));
  CHECK(events_of(streamed->body).back().event == "response.failed");
  CHECK(talk.texts().empty());
}

TEST_CASE("conversations: of two responses at once each is whole, in the order of their ends") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server, R"({"items":[{"role":"user","content":"zero"}]})");
  std::vector<std::thread> clients;
  for (const char* word : {"one", "two"}) {
    clients.emplace_back([&, word] { talk.say({{"input", word}}); });
  }
  const std::string first = server.service().wait_for_submission(1);
  const std::string second = server.service().wait_for_submission(2);
  // Neither sees the other.
  CHECK(server.messages().size() == 2);
  for (const std::string& id : {second, first}) {
    for (const chat::Event& event : kept_answer({id})) server.service().emit(id, event);
  }
  for (std::thread& client : clients) client.join();
  const auto texts = talk.texts();
  REQUIRE(texts.size() == 5);
  CHECK(std::set<std::string>{texts[1], texts[3]} == std::set<std::string>{"one", "two"});
  CHECK(std::set<std::string>{texts[2], texts[4]} == std::set<std::string>{first, second});
}

TEST_CASE("conversations: one that is erased while it is answered is told in the answer") {
  const store::TestFolder folder;
  StateServer server(folder);
  const Talk talk(server);
  Json response;
  std::thread client([&] { response = talk.say({{"input", "one"}, {"store", true}}); });
  const std::string id = server.service().wait_for_submission(1);
  CHECK(erased(server, talk.path()) == 200);
  for (const chat::Event& event : kept_answer({"Answer"})) server.service().emit(id, event);
  client.join();
  CHECK(response["store"] == true);
  CHECK(response["warnings"][0]["code"] == "not_in_conversation");
  CHECK(server.get("/responses/" + id) == response);
  server.get(talk.path(), 404);
}

TEST_CASE("conversations: keys see nothing of each other, and a purge takes them") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}), {"alpha", "beta"});
  const auto made = server.client("alpha").post(
      "/v1/conversations", R"({"items":[{"role":"user","content":"my secret"}]})");
  const std::string id = Json::parse(made->body)["id"];
  const std::string path = "/v1/conversations/" + id;
  const auto other = server.client("beta");
  CHECK(other.get(path)->status == 404);
  CHECK(other.get(path + "/items")->status == 404);
  CHECK(other.post(path, R"({"metadata":{}})")->status == 404);
  CHECK(other.post(path + "/items", R"({"items":[]})")->status == 404);
  CHECK(other.erase(path)->status == 404);
  CHECK(other.post("/v1/responses", dump(Json{{"input", "x"}, {"conversation", id}}))->status ==
        404);
  CHECK(server.client("alpha").get(path)->status == 200);
  REQUIRE(server.store().database().purge());
  CHECK(server.client("alpha").get(path)->status == 404);
  CHECK_FALSE(folder.holds("secret"));
}

TEST_CASE("conversations: broken rules are refused by name") {
  const store::TestFolder folder;
  StateServer server(folder, says({"x"}));
  const Talk talk(server);
  const auto param = [&](const Json& body) {
    return talk.say(body, 400)["error"]["param"].get<std::string>();
  };
  CHECK(param({{"input", "x"}, {"previous_response_id", "resp_x"}}) == "conversation");
  CHECK(param({{"input", "x"}, {"conversation", 3}}) == "conversation");
  CHECK(param({{"input", "x"}, {"conversation", Json::object()}}) == "conversation");
  CHECK(talk.say({{"input", "x"}, {"conversation", "conv_x"}}, 404)["error"]["param"] ==
        "conversation");
  CHECK(param({{"conversation", nullptr}}) == "input");
}

TEST_CASE("conversations: the largest bound is told, and costs nothing that was there") {
  const store::TestFolder folder;
  StateServer server(folder, says({"Answer"}), {}, {.max_bytes = 40'000});
  const Talk talk(server, R"({"items":[{"role":"user","content":"one"}]})");
  const Json item{{"role", "user"}, {"content", std::string(20'000, 'x')}};
  server.post(talk.path() + "/items", dump(Json{{"items", {item}}}), 413);
  const Json response = talk.say({{"input", {item}}});
  CHECK(response["warnings"][0]["code"] == "not_in_conversation");
  CHECK(talk.texts() == std::vector<std::string>{"one"});
}

}  // namespace
}  // namespace tandem::protocol
