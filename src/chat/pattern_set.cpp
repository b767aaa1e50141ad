#include "chat/pattern_set.h"

#include <algorithm>
#include <deque>

#include "base/check.h"

namespace tandem::chat {

PatternSet::PatternSet(const std::vector<std::string>& patterns) : nodes_(1) {
  for (size_t index = 0; index < patterns.size(); ++index) {
    TANDEM_CHECK(!patterns[index].empty(), "pattern {} is empty", index);
    insert(patterns[index], index);
  }
  link();
}

const PatternSet::State* PatternSet::child(State state, uint8_t byte) const {
  for (const auto& [label, target] : nodes_[state].children) {
    if (label == byte) return &target;
  }
  return nullptr;
}

void PatternSet::insert(const std::string& pattern, size_t index) {
  State state = 0;
  for (const char c : pattern) {
    const auto byte = static_cast<uint8_t>(c);
    nodes_[state].prefixes_of.push_back(index);
    if (const State* known = child(state, byte)) {
      state = *known;
      continue;
    }
    const auto fresh = static_cast<State>(nodes_.size());
    nodes_.push_back({.depth = nodes_[state].depth + 1});
    nodes_[state].children.emplace_back(byte, fresh);
    state = fresh;
  }
  if (!nodes_[state].match) nodes_[state].match = index;
}

void PatternSet::link() {
  std::deque<State> queue;
  for (const auto& [byte, target] : nodes_[0].children) queue.push_back(target);
  while (!queue.empty()) {
    const State state = queue.front();
    queue.pop_front();
    if (!nodes_[state].match) nodes_[state].match = nodes_[nodes_[state].fail].match;
    for (const auto& [byte, target] : nodes_[state].children) {
      nodes_[target].fail = next(nodes_[state].fail, byte);
      queue.push_back(target);
    }
  }
}

PatternSet::State PatternSet::next(State state, uint8_t byte) const {
  while (true) {
    if (const State* target = child(state, byte)) return *target;
    if (state == 0) return 0;
    state = nodes_[state].fail;
  }
}

size_t PatternSet::depth_of(State state, size_t pattern) const {
  for (; state != 0; state = nodes_[state].fail) {
    const auto& prefixes = nodes_[state].prefixes_of;
    if (std::ranges::find(prefixes, pattern) != prefixes.end()) return nodes_[state].depth;
  }
  return 0;
}

}  // namespace tandem::chat
