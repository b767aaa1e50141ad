// Ends decoded text at stop strings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/pattern_set.h"

namespace tandem::chat {

/// What ends a text, and what does not though it holds it. Empty strings are left out. Immutable.
class StopRules {
 public:
  StopRules(std::vector<std::string> stops, std::vector<std::string> markers);

 private:
  friend class StopFinder;

  std::vector<std::string> stops_;
  std::vector<std::string> markers_;
  PatternSet patterns_;  // stops first, then markers
};

/// One text's place. What comes out, joined, does not depend on how the text was cut. Of matches,
/// the one that ends first counts; a stop string inside a marker that began before it does not.
/// Text that may still become a match is held back. Not thread-safe.
class StopFinder {
 public:
  struct Found {
    std::string text;  // up to the stop
    std::optional<std::string> stop = {};
  };

  explicit StopFinder(std::shared_ptr<const StopRules> rules) : rules_(std::move(rules)) {}

  /// Whole UTF-8 characters in, text that is certain out. Nothing comes after a stop.
  Found feed(std::string_view text);

  /// What is held back is text after all (or, when a stop waited for a marker, the stop).
  Found flush();

  size_t held() const { return held_.size(); }

 private:
  /// A stop string inside what may become a marker.
  struct Candidate {
    size_t index;  // of the stop
    size_t begin;  // in `held_`
  };

  bool take_match(Found& found);
  bool may_be_in_marker(size_t begin) const;
  void stop_at(size_t index, size_t begin, Found& found);
  void release(size_t length, Found& found);

  std::shared_ptr<const StopRules> rules_;
  PatternSet::State place_ = 0;
  std::string held_;
  std::optional<Candidate> candidate_;
  bool stopped_ = false;
};

}  // namespace tandem::chat
