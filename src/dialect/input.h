// The bytes of an answer, read one at a time by coroutines that wait for more of them.
#pragma once

#include <coroutine>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/task.h"

namespace tandem::dialect {

/// One reader. What it does depends on the bytes alone, never on how they were cut. Not
/// thread-safe.
class Input {
 public:
  static constexpr int kEnd = -1;
  /// Bytes that may be read after limit() before a commit(): as long may a call's name be waited
  /// for.
  static constexpr size_t kMostLookahead = 64 * 1024;

  Input() = default;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// Adds bytes, and lets the reader take them.
  void append(std::string_view bytes);

  /// No more bytes come. With `cut_off` the answer did not end by itself: there would be more.
  void end(bool cut_off = false);
  bool was_cut_off() const { return cut_off_; }

  /// The answer ends before the next byte, whatever comes or came behind it. For readers.
  void cut();
  bool is_cut() const { return is_cut_; }

  /// Awaits the next byte, 0 to 255, or kEnd; it stays the next one.
  struct Peek {
    Input& in;
    bool await_ready() const { return in.has_next(); }
    void await_suspend(std::coroutine_handle<> reader) const { in.waiting_ = reader; }
    int await_resume() const { return in.next(); }
  };
  Peek peek() { return {*this}; }

  /// Goes past the byte that was peeked at.
  void skip() { ++at_; }

  /// Bytes before the next one.
  size_t position() const { return base_ + at_; }

  /// True when a byte is at hand.
  bool has_more() const { return at_ < bytes_.size(); }

  /// True once a reader came to the end of the answer, so that what it found may be cut off.
  bool saw_end() const { return saw_end_; }
  void forget_end() { saw_end_ = false; }

  /// A place to which reading may go back while this lives, unless commit() was called.
  class Mark {
   public:
    explicit Mark(Input& in) : in_(in), position_(in.position()), index_(in.marks_.size()) {
      in_.marks_.push_back(position_);
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark() { in_.marks_.resize(index_); }

    size_t position() const { return position_; }
    void go_back() const { in_.go_to(position_); }
    /// What was read since.
    std::string_view text() const;

   private:
    Input& in_;
    size_t position_;
    size_t index_;
  };

  /// The end is seen where the lookahead is over, until commit().
  void limit() { limit_ = position() + kMostLookahead; }
  void lift_limit() { limit_ = kNone; }

  /// What was read so far is not read again: forgets the marks and the limit.
  void commit();

 private:
  friend class Mark;
  static constexpr size_t kNone = static_cast<size_t>(-1);

  bool has_next() const { return at_ < bytes_.size() || ended_ || position() >= limit_; }
  int next();
  void go_to(size_t position);
  void wake();

  std::string bytes_;
  size_t base_ = 0;  // position of its first byte
  size_t at_ = 0;
  size_t limit_ = kNone;
  std::vector<size_t> marks_;
  bool ended_ = false;
  bool cut_off_ = false;
  bool is_cut_ = false;
  bool saw_end_ = false;
  std::coroutine_handle<> waiting_;
};

/// Reads the literal if the input goes on with it, else nothing.
Task<bool> match(Input& in, std::string_view literal);

/// Reads the longest of the strings that the input goes on with; its index, or strings.size().
Task<size_t> match_any(Input& in, const std::vector<std::string>& strings);

/// True when the input goes on with one of the strings. Reads nothing.
Task<bool> looks_at(Input& in, const std::vector<std::string>& strings);

/// True when the answer was cut off inside of the literal: all that is left begins it. Reads that.
Task<bool> is_cut_inside(Input& in, std::string_view literal);

/// Always true.
Task<bool> skip_space(Input& in);

/// Reads up to the literal and past it, at most `most` bytes, into `text`. False when it does not
/// come, and back at the start unless the answer ended.
Task<bool> read_until(Input& in, std::string_view literal, size_t most, std::string& text);

/// Letters, digits, '_', '-', '.', '/' and ':' as far as they go, unless excluded.
Task<std::string> read_word(Input& in, std::string_view without);

bool is_space(int byte);

}  // namespace tandem::dialect
