// Cuts decoded text into channels at marker strings, and ends it at stop strings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/pattern_set.h"

namespace tandem::chat {

/// The strings that mean something, and where they lead. States are small numbers.
class TextRules {
 public:
  struct Marker {
    std::string text;
    uint8_t next = 0;  // state after it
  };

  /// `markers[s]` are those of state s; `stops` end the text in every state. Empty strings are left
  /// out.
  TextRules(std::vector<std::vector<Marker>> markers, std::vector<std::string> stops);

 private:
  friend class TextMachine;

  struct State {
    std::vector<Marker> markers;
    PatternSet patterns;  // stops first, then markers
  };

  std::vector<std::string> stops_;
  std::vector<State> states_;
};

/// A part of the text in one state. Positions count bytes fed so far.
struct Piece {
  enum class Kind : uint8_t { kText, kMarker, kStop };

  Kind kind = Kind::kText;
  uint8_t state = 0;
  std::string text;  // what to deliver; for markers and stops, the string itself
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const Piece&) const = default;
};

/// One text's place. The pieces' texts, joined by state, do not depend on how the text was cut. Of
/// matches, the one that ends first counts; a stop string inside a marker that began before it does
/// not. Text that may still become a match is held back. Not thread-safe.
class TextMachine {
 public:
  TextMachine(std::shared_ptr<const TextRules> rules, uint8_t state)
      : rules_(std::move(rules)), state_(state) {}

  /// Whole UTF-8 characters in, pieces that are certain out. Nothing comes after a stop.
  std::vector<Piece> feed(std::string_view text);

  /// What is held back is text after all (or, when a stop waited for a marker, the stop).
  std::vector<Piece> flush();

  uint8_t state() const { return state_; }
  bool stopped() const { return stopped_; }
  size_t held() const { return held_.size(); }

 private:
  /// A stop string inside what may become a marker.
  struct Candidate {
    size_t index;  // of the stop
    size_t begin;  // position
  };

  const TextRules::State& rules() const { return rules_->states_[state_]; }
  bool take_match(std::vector<Piece>& pieces);
  bool may_be_in_marker(size_t begin) const;
  void stop_at(size_t index, size_t begin, std::vector<Piece>& pieces);
  void emit_text(size_t length, std::vector<Piece>& pieces);
  size_t position() const { return held_begin_ + held_.size(); }

  std::shared_ptr<const TextRules> rules_;
  uint8_t state_;
  PatternSet::State place_ = 0;
  std::string held_;
  size_t held_begin_ = 0;
  std::optional<Candidate> candidate_;
  bool stopped_ = false;
};

}  // namespace tandem::chat
