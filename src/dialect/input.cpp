#include "dialect/input.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tandem::dialect {

bool is_space(int byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r' || byte == '\v' ||
         byte == '\f';
}

std::string_view Input::Mark::text() const {
  return std::string_view(in_.bytes_).substr(position_ - in_.base_, in_.position() - position_);
}

void Input::append(std::string_view bytes) {
  if (is_cut_) return;
  size_t keep = position();
  for (const size_t mark : marks_) keep = std::min(keep, mark);
  if (keep - base_ > 4096) {
    bytes_.erase(0, keep - base_);
    at_ -= keep - base_;
    base_ = keep;
  }
  bytes_ += bytes;
  wake();
}

void Input::end(bool cut_off) {
  ended_ = true;
  cut_off_ = cut_off;
  wake();
}

void Input::cut() {
  bytes_.resize(at_);
  ended_ = true;
  is_cut_ = true;
}

void Input::wake() {
  if (waiting_ && has_next()) std::exchange(waiting_, nullptr).resume();
}

int Input::next() {
  if (ended_ && at_ >= bytes_.size()) saw_end_ = true;
  if (position() >= limit_ || at_ >= bytes_.size()) return kEnd;
  return static_cast<unsigned char>(bytes_[at_]);
}

void Input::go_to(size_t position) {
  TANDEM_CHECK(position >= base_ && position <= base_ + bytes_.size(), "{} is not kept", position);
  at_ = position - base_;
}

void Input::commit() {
  std::ranges::fill(marks_, kNone);
  limit_ = kNone;
}

Task<bool> match(Input& in, std::string_view literal) {
  const Input::Mark start(in);
  for (const char expected : literal) {
    const int c = co_await in.peek();
    if (c != static_cast<unsigned char>(expected)) {
      start.go_back();
      co_return false;
    }
    in.skip();
  }
  co_return true;
}

Task<size_t> match_any(Input& in, const std::vector<std::string>& strings) {
  const Input::Mark start(in);
  size_t best = strings.size();
  size_t read = 0;
  bool may_go_on = true;
  while (may_go_on) {
    const int c = co_await in.peek();
    if (c == Input::kEnd) break;
    in.skip();
    const std::string_view seen = start.text();
    may_go_on = false;
    for (size_t i = 0; i < strings.size(); ++i) {
      if (!strings[i].starts_with(seen)) continue;
      if (strings[i].size() > seen.size()) {
        may_go_on = true;
      } else if (best == strings.size() || strings[best].size() < seen.size()) {
        best = i;
        read = seen.size();
      }
    }
  }
  start.go_back();
  for (; read > 0; --read) in.skip();
  co_return best;
}

Task<bool> looks_at(Input& in, const std::vector<std::string>& strings) {
  const Input::Mark start(in);
  const size_t found = co_await match_any(in, strings);
  start.go_back();
  co_return found < strings.size();
}

Task<bool> is_cut_inside(Input& in, std::string_view literal) {
  const Input::Mark start(in);
  for (const char expected : literal) {
    const int c = co_await in.peek();
    if (c == Input::kEnd && in.was_cut_off() && in.saw_end()) co_return !start.text().empty();
    if (c != static_cast<unsigned char>(expected)) break;
    in.skip();
  }
  start.go_back();
  co_return false;
}

Task<bool> skip_space(Input& in) {
  while (true) {
    const int c = co_await in.peek();
    if (!is_space(c)) co_return true;
    in.skip();
  }
}

Task<bool> read_until(Input& in, std::string_view literal, size_t most, std::string& text) {
  const Input::Mark start(in);
  while (start.text().size() <= most) {
    const bool found = co_await match(in, literal);
    if (found) {
      text = start.text().substr(0, start.text().size() - literal.size());
      co_return true;
    }
    const int c = co_await in.peek();
    if (c == Input::kEnd) co_return false;
    in.skip();
  }
  start.go_back();
  co_return false;
}

Task<std::string> read_word(Input& in, std::string_view without) {
  std::string word;
  while (true) {
    const int c = co_await in.peek();
    const bool is_letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
    const char byte = static_cast<char>(c);
    const bool is_mark = c > 0 && std::string_view("_-./:").find(byte) != std::string_view::npos;
    if (!is_letter && !is_mark) break;
    if (without.find(byte) != std::string_view::npos) break;
    word += byte;
    in.skip();
  }
  co_return word;
}

}  // namespace tandem::dialect
