// Renders published chat templates over many conversations and compares with what jinja2, set up as
// transformers does, made of them. The data is outside the repository; without it the test is
// skipped.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "text/template.h"
#include "text/testdata/fixtures.h"

namespace fs = std::filesystem;
using tandem::text::Json;
using tandem::text::LocalTime;
using tandem::text::Template;

namespace {

const fs::path kFolder = fs::path(TANDEM_SOURCE_DIR) / "../shared/golden/templates";
constexpr LocalTime kRecordedAt{.unix_seconds = 1772874303, .utc_offset_seconds = 0};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Outcome {
  bool failed = false;
  std::string text;
};

/// "template conversation" → reason, for pairs in which we differ on purpose or for want of a hook.
std::map<std::string, std::string> known_differences() {
  std::map<std::string, std::string> known;
  const Json list = Json::parse(tandem::text::read_testdata("known_template_differences.json"));
  for (const Json& entry : list) {
    for (const Json& pair : entry["pairs"]) known[pair] = entry["reason"];
  }
  return known;
}

/// The members of a JSON object as text, so that numbers keep all their digits.
std::map<std::string, std::string> members(const std::string& json) {
  std::map<std::string, std::string> result;
  std::string key;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') {
      const size_t open = i++;
      for (; json[i] != '"'; ++i) i += json[i] == '\\' ? 1 : 0;
      if (depth == 1) key = json.substr(open + 1, i - open - 1);
    } else if (json[i] == '{' && ++depth == 2) {
      start = i;
    } else if (json[i] == '}' && --depth == 1) {
      result[key] = json.substr(start, i + 1 - start);
    }
  }
  return result;
}

class Renderer {
 public:
  Renderer() : conversations_(members(read(kFolder / "conversations.json"))) {}

  Outcome render(const std::string& name, const std::string& conversation) {
    auto found = templates_.find(name);
    if (found == templates_.end()) {
      auto compiled = Template::compile(read(kFolder / (name + ".jinja")));
      if (!compiled) return {.failed = true, .text = compiled.error().message};
      found = templates_.emplace(name, std::move(compiled).value()).first;
    }
    const auto text = found->second.render_text(conversations_[conversation], kRecordedAt);
    return text ? Outcome{.text = *text} : Outcome{.failed = true, .text = text.error().message};
  }

 private:
  std::map<std::string, std::string> conversations_;
  std::map<std::string, Template> templates_;
};

bool agrees(const Json& expected, const Outcome& outcome) {
  if (!expected.contains("error")) return !outcome.failed && outcome.text == expected["text"];
  static const std::string kRaised = "TemplateError: ";
  const std::string error = expected["error"];
  if (!error.starts_with(kRaised)) return outcome.failed;
  return outcome.failed && outcome.text == error.substr(kRaised.size());
}

}  // namespace

TEST_CASE("published templates: every rendering equals the reference's") {
  if (!fs::exists(kFolder / "expected.jsonl")) {
    MESSAGE("skipped: no published templates beside the repository");
    return;
  }
  Renderer renderer;
  const auto known = known_differences();
  std::set<std::string> unused;
  for (const auto& [pair, reason] : known) unused.insert(pair);
  std::ifstream lines(kFolder / "expected.jsonl");
  size_t compared = 0;
  for (std::string line; std::getline(lines, line); ++compared) {
    const Json expected = Json::parse(line);
    const std::string name = expected["template"];
    const std::string conversation = expected["conversation"];
    const std::string pair = name + " " + conversation;
    const Outcome outcome = renderer.render(name, conversation);
    const bool same = agrees(expected, outcome);
    const std::string wanted = expected.contains("error") ? expected["error"] : expected["text"];
    CAPTURE(pair);
    CAPTURE(wanted);
    CAPTURE(outcome.text);
    if (known.contains(pair)) {
      unused.erase(pair);
      CHECK_FALSE_MESSAGE(same, "listed as a difference, but it is none");
    } else {
      CHECK(same);
    }
  }
  CHECK(compared > 1000);
  for (const std::string& pair : unused) FAIL_CHECK("no such pair: " << pair);
}
