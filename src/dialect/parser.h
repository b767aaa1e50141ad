// The one incremental parser of answers: text of the model in, text, thinking and calls out.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/code_quote.h"
#include "dialect/dialect.h"

namespace tandem::dialect {

struct ThinkingMarkers {
  std::string start;
  std::string end;
};

/// What the answers of one request share. Immutable.
struct Rules {
  const Dialect* dialect = nullptr;  // null: no calls
  std::optional<ThinkingMarkers> thinking = {};
  std::string behind_thinking = {};  // follows the end marker, and is no text; where it is whole
  bool thinks_once = false;  // one thought, before all text: further markers of its start are text
  Tools tools = {};
  bool has_calls = true;  // false: markers of calls are text
  /// The answer is over behind its calls: behind the end of their section, or, where each call
  /// stands for itself, once something begins that is no further call. Calls inside thinking do not
  /// count, nor do those that are not complete.
  bool ends_after_calls = false;
  bool only_first_call = false;  // it is over behind the first complete call already

  /// All strings that mean something, of which special tokens must be kept as text.
  std::vector<std::string> markers() const;
};

/// One answer. What comes out, joined, depends on the bytes alone, never on how they were cut. Not
/// thread-safe.
///
/// A call is put out once its name is certain and its arguments begin. What turns out to be none is
/// text, marker and all. White space between thinking, calls and the answer's start is no text.
/// What the answer's end cuts off: a thought is thinking, the arguments of a call are closed, and
/// of a call without a certain name the words are text; where the answer did not end by itself,
/// such a beginning is nothing.
class Parser {
 public:
  Parser(std::shared_ptr<const Rules> rules, Channel first);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// UTF-8 in, events that are certain out.
  std::vector<Event> feed(std::string_view text);

  /// The answer is over; with `cut_off`, not by itself.
  std::vector<Event> finish(bool cut_off = false);

  /// The beginning of a call was left out.
  bool left_out_call() const { return out_.left_out_call(); }

  /// The answer ended behind its calls: what comes is not looked at.
  bool is_over() const { return in_.is_cut(); }

  /// Where text goes now; kText inside markup.
  Channel channel() const;
  bool is_in_call() const { return out_.is_call_open(); }

 private:
  struct Marker {
    enum class Kind : uint8_t { kThinkingStart, kThinkingEnd, kCalls, kMarkup };
    Kind kind;
    std::string text;
  };

  /// Markers that count in one state.
  struct MarkerSet {
    std::vector<Marker> markers = {};
    std::vector<std::string> texts = {};
    std::vector<bool> first_bytes = {};

    void add(Marker::Kind kind, const std::string& text);
    bool may_begin(int byte) const { return first_bytes[static_cast<size_t>(byte)]; }
  };

  void make_sets();
  const MarkerSet& markers() const;
  Task<bool> run();
  Task<bool> take_marker();
  Task<bool> take_calls(const Input::Mark& marker, std::string_view start);
  Task<bool> take_bare_call();
  void put_rest(const Input::Mark& marker, size_t marker_size);
  void begin_segment();
  void put(char byte);
  void end_block(Found found);
  Scope scope(std::string_view start) {
    return {in_, out_, rules_->tools, start, rules_->ends_after_calls};
  }
  const Syntax* syntax() const;

  std::shared_ptr<const Rules> rules_;
  MarkerSet sets_[2];       // by channel
  MarkerSet open_sets_[2];  // while a block of calls may still be closed
  Input in_;
  Output out_;
  Channel channel_;
  bool is_block_open_ = false;
  bool only_calls_follow_ = false;  // anything else ends the answer
  bool at_start_ = true;            // of a segment: only white space so far
  bool has_begun_ = false;          // a thought ended, or there was text
  std::string space_ = {};          // that white space
  CodeQuote quote_;
  Task<bool> task_;
};

}  // namespace tandem::dialect
