#include "chat/text_machine.h"

#include <algorithm>
#include <utility>

namespace tandem::chat {

TextRules::TextRules(std::vector<std::vector<Marker>> markers, std::vector<std::string> stops)
    : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  for (auto& list : markers) {
    std::erase_if(list, [](const Marker& marker) { return marker.text.empty(); });
    std::vector<std::string> patterns = stops_;
    for (const Marker& marker : list) patterns.push_back(marker.text);
    states_.push_back({.markers = std::move(list), .patterns = PatternSet(patterns)});
  }
}

std::vector<Piece> TextMachine::feed(std::string_view text) {
  std::vector<Piece> pieces;
  for (const char c : text) {
    if (stopped_) break;
    held_ += c;
    place_ = rules().patterns.next(place_, static_cast<uint8_t>(c));
    if (take_match(pieces)) continue;
    if (candidate_ && !may_be_in_marker(candidate_->begin)) {
      stop_at(candidate_->index, candidate_->begin, pieces);
    }
  }
  if (stopped_) return pieces;
  size_t keep = rules().patterns.depth(place_);
  if (candidate_) keep = std::max(keep, position() - candidate_->begin);
  emit_text(held_.size() - keep, pieces);
  return pieces;
}

std::vector<Piece> TextMachine::flush() {
  std::vector<Piece> pieces;
  if (stopped_) return pieces;
  if (candidate_) {
    stop_at(candidate_->index, candidate_->begin, pieces);
  } else {
    emit_text(held_.size(), pieces);
  }
  place_ = 0;
  return pieces;
}

/// True when a match ended here and was dealt with.
bool TextMachine::take_match(std::vector<Piece>& pieces) {
  const auto index = rules().patterns.match(place_);
  if (!index) return false;
  const size_t stops = rules_->stops_.size();
  if (*index < stops) {
    const size_t begin = position() - rules_->stops_[*index].size();
    if (!may_be_in_marker(begin)) {
      stop_at(*index, begin, pieces);
    } else if (!candidate_ || begin < candidate_->begin) {
      candidate_ = Candidate{*index, begin};
    }
    return true;
  }
  const TextRules::Marker& marker = rules().markers[*index - stops];
  const size_t begin = position() - marker.text.size();
  emit_text(held_.size() - marker.text.size(), pieces);
  pieces.push_back({.kind = Piece::Kind::kMarker,
                    .state = state_,
                    .text = marker.text,
                    .begin = begin,
                    .end = position()});
  held_begin_ = position();
  held_.clear();
  candidate_.reset();
  place_ = 0;
  state_ = marker.next;
  return true;
}

bool TextMachine::may_be_in_marker(size_t begin) const {
  const size_t stops = rules_->stops_.size();
  for (size_t i = 0; i < rules().markers.size(); ++i) {
    const size_t depth = rules().patterns.depth_of(place_, stops + i);
    if (depth > 0 && position() - depth <= begin) return true;
  }
  return false;
}

void TextMachine::stop_at(size_t index, size_t begin, std::vector<Piece>& pieces) {
  const std::string& stop = rules_->stops_[index];
  emit_text(begin - held_begin_, pieces);
  pieces.push_back({.kind = Piece::Kind::kStop,
                    .state = state_,
                    .text = stop,
                    .begin = begin,
                    .end = begin + stop.size()});
  held_.clear();
  candidate_.reset();
  stopped_ = true;
}

/// Delivers the first bytes of what is held.
void TextMachine::emit_text(size_t length, std::vector<Piece>& pieces) {
  if (length == 0) return;
  pieces.push_back({.kind = Piece::Kind::kText,
                    .state = state_,
                    .text = held_.substr(0, length),
                    .begin = held_begin_,
                    .end = held_begin_ + length});
  held_.erase(0, length);
  held_begin_ += length;
}

}  // namespace tandem::chat
