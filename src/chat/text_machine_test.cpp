#include "chat/text_machine.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

using tandem::chat::PatternSet;
using tandem::chat::Piece;
using tandem::chat::TextMachine;
using tandem::chat::TextRules;
using Marker = TextRules::Marker;

namespace {

/// Neighbouring text of one state as one piece; positions left out.
std::vector<std::string> joined(const std::vector<Piece>& pieces) {
  std::vector<std::string> result;
  std::optional<uint8_t> last;
  for (const Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::kText) {
      if (last == piece.state) {
        result.back() += piece.text;
      } else {
        result.push_back(std::to_string(piece.state) + ":" + piece.text);
      }
      last = piece.state;
    } else {
      result.push_back((piece.kind == Piece::Kind::kStop ? "stop " : "marker ") + piece.text);
      last.reset();
    }
  }
  return result;
}

std::vector<Piece> run(const std::shared_ptr<const TextRules>& rules,
                       const std::vector<std::string_view>& parts) {
  TextMachine machine(rules, 0);
  std::vector<Piece> pieces;
  for (const std::string_view part : parts) {
    for (Piece& piece : machine.feed(part)) pieces.push_back(std::move(piece));
  }
  for (Piece& piece : machine.flush()) pieces.push_back(std::move(piece));
  return pieces;
}

std::shared_ptr<const TextRules> thinking(std::vector<std::string> stops) {
  return std::make_shared<const TextRules>(
      std::vector<std::vector<Marker>>{{{"<think>", 1}}, {{"</think>", 0}}}, std::move(stops));
}

std::vector<std::string> whole(const std::shared_ptr<const TextRules>& rules,
                               const std::string& text) {
  return joined(run(rules, {text}));
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

TEST_CASE("text machine: a text ends before the stop string that ends first") {
  std::mt19937 random(3);
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < 1 + random() % 4; ++i)
      stops.push_back(random_text(random, "ab", 4) + "b");
    const std::string text = random_text(random, "abc", 14);
    const auto rules =
        std::make_shared<const TextRules>(std::vector<std::vector<Marker>>(1), stops);
    TextMachine machine(rules, 0);
    std::string delivered;
    std::string stop;
    for (size_t at = 0; at < text.size();) {
      const size_t step = 1 + random() % 3;
      for (const Piece& piece : machine.feed(std::string_view(text).substr(at, step))) {
        (piece.kind == Piece::Kind::kText ? delivered : stop) += piece.text;
      }
      at += step;
    }
    for (const Piece& piece : machine.flush()) {
      (piece.kind == Piece::Kind::kText ? delivered : stop) += piece.text;
    }
    CAPTURE(text);
    CHECK(std::pair(delivered, stop) == naive_stop(text, stops));
  }
}

TEST_CASE("text machine: pieces do not depend on where the text is cut") {
  std::mt19937 random(5);
  const std::string words[] = {"<think>", "</think>", "<th", "ink>", "stop",
                               "sto",     " ",        "a",   "<",    "é"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = 0; i < random() % 9; ++i) text += words[random() % std::size(words)];
    const auto rules = thinking(round % 2 == 0 ? std::vector<std::string>{"stop", "nk>a", "think"}
                                               : std::vector<std::string>{});
    const auto expected = whole(rules, text);
    for (size_t first = 0; first <= text.size(); ++first) {
      for (size_t second = first; second <= text.size(); second += 2) {
        const std::string_view view = text;
        CAPTURE(text);
        CHECK(joined(run(rules, {view.substr(0, first), view.substr(first, second - first),
                                 view.substr(second)})) == expected);
      }
    }
  }
}

TEST_CASE("text machine: only what may become a match is held back") {
  TextMachine machine(thinking({"END"}), 0);
  CHECK(joined(machine.feed("abc")) == std::vector<std::string>{"0:abc"});
  CHECK(joined(machine.feed("d<thin")) == std::vector<std::string>{"0:d"});
  CHECK(machine.held() == 5);
  CHECK(joined(machine.feed("g EN")) == std::vector<std::string>{"0:<thing "});
  CHECK(machine.held() == 2);
  CHECK(joined(machine.flush()) == std::vector<std::string>{"0:EN"});
}

TEST_CASE("text machine: a stop string inside a marker is part of the marker") {
  using Lines = std::vector<std::string>;
  CHECK(whole(thinking({"think"}), "a<think>b") == Lines{"0:a", "marker <think>", "1:b"});
  CHECK(whole(thinking({"think"}), "a<thinker") == Lines{"0:a<", "stop think"});
  CHECK(whole(thinking({"think"}), "I think") == Lines{"0:I ", "stop think"});
  CHECK(whole(thinking({"think"}), "a<think") == Lines{"0:a<", "stop think"});
  CHECK(whole(thinking({"</think>"}), "<think>x</think>y") ==
        Lines{"marker <think>", "1:x", "stop </think>"});
}

TEST_CASE("text machine: markers count only in their state, stops in all") {
  using Lines = std::vector<std::string>;
  CHECK(whole(thinking({}), "a</think><think><think></think>b") ==
        Lines{"0:a</think>", "marker <think>", "1:<think>", "marker </think>", "0:b"});
  CHECK(whole(thinking({"X"}), "<think>aXb") == Lines{"marker <think>", "1:a", "stop X"});
}

TEST_CASE("text machine: nothing comes after a stop") {
  TextMachine machine(thinking({"X"}), 0);
  CHECK(joined(machine.feed("aXb")).back() == "stop X");
  CHECK(machine.stopped());
  CHECK(machine.feed("c").empty());
  CHECK(machine.flush().empty());
}

TEST_CASE("text machine: agrees with the reference's recorded runs where it keeps its text") {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/vectors/golden_text_machine.json");
  const auto golden = nlohmann::json::parse(in);
  std::map<std::string, uint8_t> states;
  for (const auto& [name, list] : golden["transitions"].items()) {
    states.emplace(name, static_cast<uint8_t>(states.size()));
  }
  std::vector<std::vector<Marker>> markers(states.size());
  for (const auto& [name, list] : golden["transitions"].items()) {
    for (const auto& entry : list) {
      markers[states[name]].push_back({entry[0], states[entry[1].get<std::string>()]});
    }
  }
  const auto rules = std::make_shared<const TextRules>(markers, std::vector<std::string>{});
  for (const auto& recorded : golden["runs"]) {
    TextMachine machine(rules, states[recorded["initial"].get<std::string>()]);
    for (const auto& step : recorded["steps"]) {
      std::map<uint8_t, std::string> ours;
      std::map<uint8_t, std::string> theirs;
      for (const Piece& piece : machine.feed(step["chunk"].get<std::string>())) {
        if (piece.kind == Piece::Kind::kText) ours[piece.state] += piece.text;
      }
      for (const auto& segment : step["segments"]) {
        const std::string text = segment[1];
        if (!text.empty()) theirs[states[segment[0].get<std::string>()]] += text;
      }
      CHECK(ours == theirs);
      CHECK(machine.held() == step["pending"].get<std::string>().size());
    }
    // The reference drops held text on "stop"; here it is delivered.
    const std::string pending = recorded["steps"].back()["pending"];
    std::string flushed;
    for (const Piece& piece : machine.flush()) flushed += piece.text;
    CHECK(flushed == pending);
    CHECK(machine.state() == states[recorded["state"].get<std::string>()]);
  }
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
