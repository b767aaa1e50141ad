#include "dialect/parser.h"

#include <algorithm>
#include <utility>

namespace tandem::dialect {
namespace {

/// Words that are left of a call that was cut off, without the syntax around them.
std::string without_markup(std::string text, const std::vector<std::string>& literals) {
  for (const std::string& literal : literals) {
    for (size_t at = text.find(literal); at != std::string::npos; at = text.find(literal)) {
      text.erase(at, literal.size());
    }
  }
  size_t cut = 0;
  for (const std::string& literal : literals) {
    for (size_t size = literal.size() - 1; size > cut; --size) {
      if (text.ends_with(std::string_view(literal).substr(0, size))) cut = size;
    }
  }
  text.resize(text.size() - cut);
  const bool is_blank =
      std::ranges::all_of(text, [](char c) { return is_space(static_cast<unsigned char>(c)); });
  return is_blank ? std::string() : text;
}

}  // namespace

std::vector<std::string> Rules::markers() const {
  std::vector<std::string> all;
  if (thinking) all = {thinking->start, thinking->end};
  if (dialect != nullptr && (has_calls || dialect->syntax->owns_answer())) {
    const auto literals = dialect->syntax->literals();
    all.insert(all.end(), literals.begin(), literals.end());
  }
  std::erase(all, std::string());
  return all;
}

void Parser::MarkerSet::add(Marker::Kind kind, const std::string& text) {
  if (first_bytes.empty()) first_bytes.resize(256);
  if (text.empty() || std::ranges::find(texts, text) != texts.end()) return;
  markers.push_back({kind, text});
  texts.push_back(text);
  first_bytes[static_cast<unsigned char>(text[0])] = true;
}

Parser::Parser(std::shared_ptr<const Rules> rules, Channel first)
    : rules_(std::move(rules)), out_(in_, rules_->only_first_call), channel_(first) {
  make_sets();
  task_ = syntax() != nullptr && syntax()->owns_answer() ? syntax()->read_all(scope({})) : run();
}

Channel Parser::channel() const {
  return syntax() != nullptr && syntax()->owns_answer() ? out_.entered() : channel_;
}

const Syntax* Parser::syntax() const {
  return rules_->dialect == nullptr ? nullptr : rules_->dialect->syntax.get();
}

void Parser::make_sets() {
  using Kind = Marker::Kind;
  constexpr size_t kIsText = 0;
  constexpr size_t kIsThinking = 1;
  for (MarkerSet& set : sets_) {
    set.first_bytes.resize(256);
    if (syntax() == nullptr || !rules_->has_calls) continue;
    for (const std::string& start : syntax()->starts()) set.add(Kind::kCalls, start);
  }
  if (rules_->thinking) {
    sets_[kIsText].add(Kind::kThinkingStart, rules_->thinking->start);
    sets_[kIsThinking].add(Kind::kThinkingEnd, rules_->thinking->end);
  }
  for (size_t i = 0; i < 2; ++i) {
    open_sets_[i] = sets_[i];
    if (syntax() == nullptr) continue;
    for (const std::string& text : syntax()->literals()) open_sets_[i].add(Kind::kMarkup, text);
  }
}

const Parser::MarkerSet& Parser::markers() const {
  return (is_block_open_ ? open_sets_ : sets_)[static_cast<size_t>(channel_)];
}

std::vector<Event> Parser::feed(std::string_view text) {
  in_.append(text);
  return out_.take();
}

std::vector<Event> Parser::finish(bool cut_off) {
  in_.end(cut_off);
  return out_.take();
}

Task<bool> Parser::run() {
  while (true) {
    const int c = co_await in_.peek();
    if (c == Input::kEnd) break;
    if (markers().may_begin(c)) {
      const bool taken = co_await take_marker();
      if (taken) continue;
    }
    if (at_start_ && channel_ == Channel::kText && syntax() != nullptr && rules_->has_calls &&
        c == syntax()->bare_start() && c != 0) {
      const bool taken = co_await take_bare_call();
      if (taken) continue;
    }
    if (only_calls_follow_ && !is_space(c)) {
      in_.cut();
      co_return true;
    }
    in_.skip();
    put(static_cast<char>(c));
  }
  // White space after calls is no text, other white space is.
  if (out_.calls() == 0) out_.text(channel_, std::exchange(space_, {}), in_.position());
  co_return true;
}

void Parser::put(char byte) {
  if (at_start_ && is_space(static_cast<unsigned char>(byte))) {
    space_ += byte;
    return;
  }
  at_start_ = false;
  has_begun_ |= channel_ == Channel::kText;
  space_ += byte;
  for (const char each : space_) quote_.put(each);
  out_.text(channel_, space_, in_.position());
  space_.clear();
}

void Parser::begin_segment() {
  at_start_ = true;
  space_.clear();
  quote_ = {};
}

/// False, with nothing read, when there is no marker here that means anything.
Task<bool> Parser::take_marker() {
  const Input::Mark here(in_);
  const MarkerSet& set = markers();
  const size_t index = co_await match_any(in_, set.texts);
  if (index == set.texts.size()) co_return false;
  const Marker& marker = set.markers[index];
  if (marker.kind == Marker::Kind::kCalls) {
    bool taken = false;
    if (!quote_.is_inside()) taken = co_await take_calls(here, marker.text);
    if (!taken) here.go_back();
    co_return taken;
  }
  if (marker.kind == Marker::Kind::kMarkup) {
    out_.markup();
    co_return true;
  }
  const bool begins = marker.kind == Marker::Kind::kThinkingStart;
  if (only_calls_follow_ || (begins && has_begun_ && rules_->thinks_once)) {
    here.go_back();
    co_return false;
  }
  out_.markup();
  channel_ = begins ? Channel::kThinking : Channel::kText;
  has_begun_ |= !begins;
  is_block_open_ = false;
  begin_segment();
  if (marker.kind == Marker::Kind::kThinkingEnd && !rules_->behind_thinking.empty()) {
    const bool has_gap = co_await match(in_, rules_->behind_thinking);
    if (has_gap) out_.markup();
  }
  co_return true;
}

/// Behind the start marker of a block.
Task<bool> Parser::take_calls(const Input::Mark& marker, std::string_view start) {
  in_.forget_end();
  in_.limit();
  const Found found = co_await syntax()->read(scope(start));
  in_.lift_limit();
  if (found == Found::kCalls || found == Found::kOpenCalls || found == Found::kNoCall) {
    const bool ends_in_call = in_.was_cut_off() && in_.saw_end() && !out_.ended_well();
    while (ends_in_call && in_.has_more()) in_.skip();  // the beginning of a tag
    out_.markup();
    end_block(found);
    begin_segment();
    co_return true;
  }
  if (in_.saw_end() && !(start.empty() || quote_.is_after_quote())) {
    put_rest(marker, start.size());
    co_return true;
  }
  if (found == Found::kBroken && !start.empty()) {
    out_.misfit();
    only_calls_follow_ = false;
  }
  co_return false;
}

void Parser::end_block(Found found) {
  is_block_open_ = found == Found::kOpenCalls;
  only_calls_follow_ = rules_->ends_after_calls && found != Found::kNoCall &&
                       channel_ == Channel::kText && out_.ended_well();
  const bool is_closed = found == Found::kCalls && !in_.saw_end();
  if (only_calls_follow_ && is_closed && rules_->dialect->has_call_section()) in_.cut();
}

Task<bool> Parser::take_bare_call() {
  const Input::Mark here(in_);
  const bool taken = co_await take_calls(here, {});
  if (!taken) here.go_back();
  co_return taken;
}

/// The answer ended inside a call that was not put out.
void Parser::put_rest(const Input::Mark& marker, size_t marker_size) {
  // Reading may have gone back from the end.
  while (in_.has_more()) in_.skip();
  std::string rest =
      without_markup(std::string(marker.text().substr(marker_size)), syntax()->literals());
  out_.markup();
  space_.clear();
  if (in_.was_cut_off()) return out_.leave_out_call();
  if (!rest.empty()) out_.text(channel_, rest, in_.position());
}

}  // namespace tandem::dialect
