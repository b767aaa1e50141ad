#include "chat/stop_finder.h"

#include <algorithm>
#include <utility>

namespace tandem::chat {
namespace {

std::vector<std::string> without_empty(std::vector<std::string> strings) {
  std::erase(strings, std::string());
  return strings;
}

std::vector<std::string> joined_lists(std::vector<std::string> first,
                                      const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

StopRules::StopRules(std::vector<std::string> stops, std::vector<std::string> markers)
    : stops_(without_empty(std::move(stops))),
      markers_(stops_.empty() ? std::vector<std::string>() : without_empty(std::move(markers))),
      patterns_(joined_lists(stops_, markers_)) {}

StopFinder::Found StopFinder::feed(std::string_view text) {
  Found found;
  if (stopped_) return found;
  for (const char c : text) {
    held_ += c;
    place_ = rules_->patterns_.next(place_, static_cast<uint8_t>(c));
    if (take_match(found)) {
      if (stopped_) return found;
    } else if (candidate_ && !may_be_in_marker(candidate_->begin)) {
      stop_at(candidate_->index, candidate_->begin, found);
      return found;
    }
  }
  size_t keep = rules_->patterns_.depth(place_);
  if (candidate_) keep = std::max(keep, held_.size() - candidate_->begin);
  release(held_.size() - keep, found);
  return found;
}

StopFinder::Found StopFinder::flush() {
  Found found;
  if (stopped_) return found;
  if (candidate_) {
    stop_at(candidate_->index, candidate_->begin, found);
  } else {
    release(held_.size(), found);
  }
  place_ = 0;
  return found;
}

/// True when a match ended here and was dealt with.
bool StopFinder::take_match(Found& found) {
  const auto index = rules_->patterns_.match(place_);
  if (!index) return false;
  if (*index < rules_->stops_.size()) {
    const size_t begin = held_.size() - rules_->stops_[*index].size();
    if (!may_be_in_marker(begin)) {
      stop_at(*index, begin, found);
    } else if (!candidate_ || begin < candidate_->begin) {
      candidate_ = Candidate{*index, begin};
    }
    return true;
  }
  // A marker: stops inside it do not count, nor do those that begin in it.
  candidate_.reset();
  release(held_.size(), found);
  place_ = 0;
  return true;
}

bool StopFinder::may_be_in_marker(size_t begin) const {
  const size_t stops = rules_->stops_.size();
  for (size_t i = 0; i < rules_->markers_.size(); ++i) {
    const size_t depth = rules_->patterns_.depth_of(place_, stops + i);
    if (depth > 0 && held_.size() - depth <= begin) return true;
  }
  return false;
}

void StopFinder::stop_at(size_t index, size_t begin, Found& found) {
  release(begin, found);
  found.stop = rules_->stops_[index];
  held_.clear();
  candidate_.reset();
  stopped_ = true;
}

void StopFinder::release(size_t length, Found& found) {
  found.text += held_.substr(0, length);
  held_.erase(0, length);
  if (candidate_) candidate_->begin -= length;
}

}  // namespace tandem::chat
