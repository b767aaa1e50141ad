#include "chat/divergence.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tandem::chat {
namespace {

/// A conversation whose template leaves every thought out.
struct Thoughtless {
  explicit Thoughtless(size_t turns, bool drops_content = false) {
    for (size_t i = 0; i < turns; ++i) {
      begins.push_back(rendering.size());
      const std::string number = std::to_string(i);
      messages.push_back({{"role", "assistant"},
                          {"content", "answer " + number + "."},
                          {"reasoning_content", "answer of which I think, " + number}});
      rendering += "<assistant>";
      if (!drops_content) rendering += "answer " + number + ".";
      rendering += " " + std::string(60, 'a') + "\n";
    }
  }

  Json messages = Json::array();
  std::string rendering;
  std::vector<size_t> begins;
};

TEST_CASE("divergence: a place is found behind thoughts that the template left out") {
  const Thoughtless talk(200);
  for (size_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    CHECK(message_at(talk.begins[i] + 12, talk.rendering, talk.messages) == i);
  }
}

TEST_CASE("divergence: a shown thought belongs to its message, also where it quotes the answer") {
  const Json messages = Json::parse(R"([
    {"role": "user", "content": "go"},
    {"role": "assistant", "reasoning_content": "I say ok then", "content": "ok"},
    {"role": "user", "content": "more"}])");
  const std::string rendering = "<u>go<a>I say ok then</think>ok<u>more";
  CHECK(message_at(rendering.find("say"), rendering, messages) == 1);
  CHECK(message_at(rendering.find("ok<u>"), rendering, messages) == 1);
  CHECK(message_at(rendering.find("more"), rendering, messages) == 2);
}

// Each of these would be read to the rendering's end: hundreds of gigabytes.
TEST_CASE("divergence: what many left out texts cost is linear" * doctest::timeout(20)) {
  const Thoughtless thoughts(60000);
  CHECK(message_at(thoughts.begins.back() + 12, thoughts.rendering, thoughts.messages) == 59999);
  const Thoughtless all(60000, true);
  CHECK(message_at(all.begins.back(), all.rendering, all.messages) == 59999);
}

}  // namespace
}  // namespace tandem::chat
