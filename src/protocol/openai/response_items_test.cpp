#include "protocol/openai/response_items.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tandem::protocol::openai {
namespace {

const std::string kId = "resp_0123456789abcdef01234567";

TEST_CASE("response items: kept input has ids, types and parts") {
  CHECK(normal_items("hi", kId) == Json::parse(R"([
    {"id":"msg_0123456789abcdef01234567i00","type":"message","role":"user",
     "content":[{"type":"input_text","text":"hi"}],"status":"completed"}])"));
  const Json items = normal_items(Json::parse(R"([
    {"role":"assistant","content":"yes","id":"mine"},
    {"type":"function_call_output","call_id":"c","output":"1"},
    {"type":"reasoning","summary":[]}])"),
                                  kId);
  CHECK(items[0]["id"] == "mine");
  CHECK(items[0]["content"][0]["type"] == "output_text");
  CHECK(items[1]["id"] == "fco_0123456789abcdef01234567i01");
  CHECK(items[1]["output"] == "1");
  CHECK_FALSE(items[2].contains("status"));
  CHECK(normal_items(nullptr, kId).empty());
}

TEST_CASE("response items: kept input has the types that are told of items") {
  const Json items = normal_items(Json::parse(R"([
    {"role":"user","content":["a",{"type":"input_text","text":"b"}],"name":null,"status":null},
    {"type":"function_call","call_id":"c","name":"f","arguments":{"n":1},"content":7},
    {"type":"reasoning","content":[{"text":"t"},3],"encrypted_content":null},
    {"role":"assistant","content":null}])"),
                                  kId);
  CHECK(items[0]["content"] ==
        Json::parse(R"([{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}])"));
  CHECK_FALSE(items[0].contains("name"));
  CHECK(items[0]["status"] == "completed");
  CHECK(items[1]["arguments"] == R"({"n":1})");
  CHECK(items[1]["content"] == nullptr);
  CHECK(items[2]["content"] == Json::parse(R"([{"text":"t","type":"reasoning_text"}])"));
  CHECK_FALSE(items[2].contains("encrypted_content"));
  CHECK(items[3]["content"] == nullptr);
}

TEST_CASE("response items: our ids tell their response") {
  CHECK(response_of_item("msg_0123456789abcdef01234567i00") == kId);
  CHECK(response_of_item("fc_0123456789abcdef0123456700") == kId);
  for (const char* other :
       {"msg_1", "msg_0123456789abcdef01234567", "x", "", "msg_0123456789abcdef0123456g00"})
    CHECK(response_of_item(other).empty());
}

TEST_CASE("response items: references are resolved where they can be") {
  const std::string ours = "rs_0123456789abcdef0123456700";
  const Json history = Json::parse(R"([{"id":"a","type":"message"}])");
  Json input = Json::parse(R"([{"type":"item_reference","id":"a"},{"id":"ID"},
                               {"type":"item_reference","id":"c"},{"role":"user","id":"d"}])");
  input[1]["id"] = ours;
  REQUIRE(
      resolve_references(input, history, 1000, [&](const std::string& response) -> Result<Json> {
        CHECK(response == kId);
        return Json::array({Json{{"id", ours}, {"type", "reasoning"}}});
      }));
  CHECK(input[0] == history[0]);
  CHECK(input[1]["type"] == "reasoning");
  CHECK(is_reference(input[2]));
  CHECK(input[3]["role"] == "user");
}

TEST_CASE("response items: many references read a response once, and are bounded in bytes") {
  const std::string prefix = "msg_0123456789abcdef01234567";
  Json items = Json::array();
  for (int i = 0; i < 20'000; ++i) {
    items.push_back(Json{{"id", fmt::format("{}i{}", prefix, i)}, {"content", "x"}});
  }
  const size_t bytes = dump(items).size() - items.size() - 1;  // without commas and brackets
  Json references = Json::array();
  for (const Json& item : items) {
    references.push_back(Json{{"type", "item_reference"}, {"id", item["id"]}});
  }
  int asked = 0;
  const ItemsOf items_of = [&](const std::string&) -> Result<Json> {
    ++asked;
    return items;
  };
  Json input = references;
  REQUIRE(resolve_references(input, Json::array(), bytes, items_of));
  CHECK(input == items);
  CHECK(asked == 1);
  input = references;
  const Status over = resolve_references(input, Json::array(), bytes - 1, items_of);
  REQUIRE_FALSE(over);
  CHECK(over.error().code == ErrorCode::kTooLarge);
  CHECK(over.error().field == "input");
  // Those of the history count as well.
  input = references;
  CHECK_FALSE(resolve_references(input, items, bytes - 1, items_of));
  // Behind the first that is unknown nothing is read: the request is refused for it.
  asked = 0;
  input = Json::array({Json{{"type", "item_reference"}, {"id", "msg_x"}}, references[0]});
  REQUIRE(resolve_references(input, Json::array(), bytes, items_of));
  CHECK(asked == 0);
}

TEST_CASE("response items: pages in both orders cover every item once") {
  Json items = Json::array();
  for (int i = 0; i < 7; ++i) items.push_back(Json{{"id", std::to_string(i)}});
  for (const bool ascending : {true, false}) {
    std::string seen;
    std::string after;
    bool more = true;
    while (more) {
      const Json page =
          page_of(items, {.limit = 3, .ascending = ascending, .after = after}).value();
      for (const Json& item : page["data"]) seen += item["id"].get<std::string>();
      CHECK(page["first_id"] == page["data"][0]["id"]);
      after = page["last_id"];
      more = page["has_more"];
    }
    CHECK(seen == (ascending ? "0123456" : "6543210"));
  }
  const Json before = page_of(items, {.ascending = true, .after = "1", .before = "4"}).value();
  CHECK(before["data"] == Json::parse(R"([{"id":"2"},{"id":"3"}])"));
  CHECK_FALSE(before["has_more"]);
  CHECK(page_of(items, {.after = "x"}).error().field == "after");
  CHECK(page_of(Json::array(), {})->at("first_id").is_null());
}

}  // namespace
}  // namespace tandem::protocol::openai
