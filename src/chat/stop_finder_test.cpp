#include "chat/stop_finder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using tandem::chat::PatternSet;
using tandem::chat::StopFinder;
using tandem::chat::StopRules;

namespace {

using Outcome = std::pair<std::string, std::string>;  // text, stop

Outcome run(const std::shared_ptr<const StopRules>& rules,
            const std::vector<std::string_view>& parts) {
  StopFinder finder(rules);
  Outcome outcome;
  const auto take = [&outcome](const StopFinder::Found& found) {
    outcome.first += found.text;
    if (found.stop) outcome.second = *found.stop;
  };
  for (const std::string_view part : parts) take(finder.feed(part));
  take(finder.flush());
  return outcome;
}

std::shared_ptr<const StopRules> thinking(std::vector<std::string> stops) {
  return std::make_shared<const StopRules>(std::move(stops),
                                           std::vector<std::string>{"<think>", "</think>"});
}

Outcome whole(const std::shared_ptr<const StopRules>& rules, const std::string& text) {
  return run(rules, {text});
}

std::string random_text(std::mt19937& random, const std::string& alphabet, size_t longest) {
  std::string text;
  const size_t length = random() % (longest + 1);
  for (size_t i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
  return text;
}

/// What a whole text is cut to: before the stop that ends first, of those the longest.
std::pair<std::string, std::string> naive_stop(const std::string& text,
                                               const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string longest;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop) && stop.size() > longest.size()) longest = stop;
    }
    if (!longest.empty()) return {text.substr(0, end - longest.size()), longest};
  }
  return {text, ""};
}

}  // namespace

TEST_CASE("stop finder: a text ends before the stop string that ends first") {
  std::mt19937 random(3);
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < 1 + random() % 4; ++i)
      stops.push_back(random_text(random, "ab", 4) + "b");
    const std::string text = random_text(random, "abc", 14);
    const auto rules = std::make_shared<const StopRules>(stops, std::vector<std::string>());
    std::vector<std::string_view> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t step = 1 + random() % 3;
      parts.push_back(std::string_view(text).substr(at, step));
      at += step;
    }
    CAPTURE(text);
    CHECK(run(rules, parts) == naive_stop(text, stops));
  }
}

TEST_CASE("stop finder: the end does not depend on where the text is cut") {
  std::mt19937 random(5);
  const std::string words[] = {"<think>", "</think>", "<th", "ink>", "stop",
                               "sto",     " ",        "a",   "<",    "é"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = 0; i < random() % 9; ++i) text += words[random() % std::size(words)];
    const auto rules = thinking(round % 2 == 0 ? std::vector<std::string>{"stop", "nk>a", "think"}
                                               : std::vector<std::string>{});
    const Outcome expected = whole(rules, text);
    for (size_t first = 0; first <= text.size(); ++first) {
      for (size_t second = first; second <= text.size(); second += 2) {
        const std::string_view view = text;
        CAPTURE(text);
        CHECK(run(rules, {view.substr(0, first), view.substr(first, second - first),
                          view.substr(second)}) == expected);
      }
    }
  }
}

TEST_CASE("stop finder: only what may become a stop is held back") {
  StopFinder finder(thinking({"END"}));
  CHECK(finder.feed("abc").text == "abc");
  CHECK(finder.feed("d EN").text == "d ");
  CHECK(finder.held() == 2);
  CHECK(finder.feed("d").text == "ENd");
  CHECK(finder.feed("EN").text.empty());
  CHECK(finder.flush().text == "EN");
}

TEST_CASE("stop finder: a stop string inside a marker is part of the marker") {
  CHECK(whole(thinking({"think"}), "a<think>b") == Outcome{"a<think>b", ""});
  CHECK(whole(thinking({"think"}), "a<thinker") == Outcome{"a<", "think"});
  CHECK(whole(thinking({"think"}), "I think") == Outcome{"I ", "think"});
  CHECK(whole(thinking({"think"}), "a<think") == Outcome{"a<", "think"});
  CHECK(whole(thinking({"</think>"}), "<think>x</think>y") == Outcome{"<think>x", "</think>"});
  CHECK(whole(thinking({"X"}), "<think>aXb") == Outcome{"<think>a", "X"});
}

TEST_CASE("stop finder: nothing comes after a stop") {
  StopFinder finder(thinking({"X"}));
  CHECK(finder.feed("aXb").stop == "X");
  CHECK(finder.feed("c").text.empty());
  CHECK(finder.flush().text.empty());
}

TEST_CASE("pattern set: depth is the longest suffix that begins a pattern") {
  const std::vector<std::string> patterns = {"abcd", "bcx", "c"};
  const PatternSet set(patterns);
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, "abcdx", 10);
    PatternSet::State state = 0;
    for (const char c : text) state = set.next(state, static_cast<uint8_t>(c));
    size_t depth = 0;
    size_t longest = 0;
    for (const std::string& pattern : patterns) {
      for (size_t length = 1; length <= pattern.size(); ++length) {
        if (text.ends_with(pattern.substr(0, length))) depth = std::max(depth, length);
      }
      if (text.ends_with(pattern)) longest = std::max(longest, pattern.size());
    }
    CHECK(set.depth(state) == depth);
    const auto match = set.match(state);
    CHECK((match ? patterns[*match].size() : 0) == longest);
  }
}
