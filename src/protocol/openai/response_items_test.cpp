#include "protocol/openai/response_items.h"

#include <doctest/doctest.h>

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

TEST_CASE("response items: our ids tell their response") {
  CHECK(response_of_item("msg_0123456789abcdef01234567i00") == kId);
  CHECK(response_of_item("fc_0123456789abcdef0123456700") == kId);
  for (const char* other :
       {"msg_1", "msg_0123456789abcdef01234567", "x", "", "msg_0123456789abcdef0123456g00"})
    CHECK(response_of_item(other).empty());
}

TEST_CASE("response items: references are resolved where they can be") {
  const Json history = Json::parse(R"([{"id":"a","type":"message"}])");
  Json input = Json::parse(R"([{"type":"item_reference","id":"a"},{"id":"b"},
                               {"type":"item_reference","id":"c"},{"role":"user","id":"d"}])");
  REQUIRE(resolve_references(input, history, [](const std::string& id) -> Result<Json> {
    return id == "b" ? Json{{"id", "b"}, {"type", "reasoning"}} : Json();
  }));
  CHECK(input[0] == history[0]);
  CHECK(input[1]["type"] == "reasoning");
  CHECK(is_reference(input[2]));
  CHECK(input[3]["role"] == "user");
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
