// Finds any of several strings in a stream of bytes (Aho-Corasick).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::chat {

/// Immutable; thread-safe. A stream's place is a State; 0 is the start.
class PatternSet {
 public:
  using State = uint32_t;

  /// Patterns must not be empty.
  explicit PatternSet(const std::vector<std::string>& patterns);

  State next(State state, uint8_t byte) const;

  /// The longest pattern that ends here, by its index (the first of equal ones).
  std::optional<size_t> match(State state) const { return nodes_[state].match; }

  /// How many of the last bytes may begin a match.
  size_t depth(State state) const { return nodes_[state].depth; }

  /// How many of the last bytes may begin a match of the given pattern, itself not counted as a
  /// whole.
  size_t depth_of(State state, size_t pattern) const;

 private:
  struct Node {
    std::vector<std::pair<uint8_t, State>> children = {};
    State fail = 0;
    uint32_t depth = 0;
    std::optional<size_t> match = {};      // own, else of the longest suffix
    std::vector<size_t> prefixes_of = {};  // patterns that go on below this node
  };

  const State* child(State state, uint8_t byte) const;
  void insert(const std::string& pattern, size_t index);
  void link();

  std::vector<Node> nodes_;
};

}  // namespace tandem::chat
