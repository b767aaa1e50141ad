// Collects what a parser finds, as events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialect/event.h"
#include "dialect/input.h"

namespace tandem::dialect {

/// Neighbouring text of a channel and pieces of arguments are joined until take(). Not thread-safe.
class Output {
 public:
  /// With `only_first_call` the answer is cut behind the first call that is complete.
  explicit Output(Input& in, bool only_first_call = false)
      : in_(in), only_first_call_(only_first_call) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Text made of the answer's bytes up to `end`.
  void text(Channel channel, std::string_view text, size_t end);

  /// For syntaxes that own the answer: the next byte of text, if it is some, is of this channel.
  void enter(Channel channel) { entered_ = channel; }
  Channel entered() const { return entered_; }

  /// What was read up to here and is not delivered is markup.
  void markup();
  void misfit();

  /// From here on reading does not go back to before the call. No other call may be open.
  void start_call(std::string name, std::string id);

  /// To append to while a call is open; after each append, what was read belongs to the call.
  std::string& arguments() { return arguments_; }
  void end_call(bool complete);

  /// What was read up to here begins a call, and nothing is put out of it.
  void leave_out_call() { left_out_call_ = true; }
  bool left_out_call() const { return left_out_call_; }

  bool is_call_open() const { return is_open_; }
  uint32_t calls() const { return calls_; }
  /// The last call is complete, and nothing that was to be one failed since.
  bool ended_well() const { return ended_well_; }

  std::vector<Event> take();

 private:
  using Body = decltype(Event::body);

  void push(Body body, size_t end);
  void flush_text();
  void flush_arguments();

  Input& in_;
  const bool only_first_call_;
  std::vector<Event> events_;
  std::string text_;
  Channel channel_ = Channel::kText;
  Channel entered_ = Channel::kText;
  size_t text_end_ = 0;
  std::string arguments_;
  size_t covered_ = 0;  // end of the last event
  uint32_t calls_ = 0;
  bool is_open_ = false;
  bool ended_well_ = false;
  bool left_out_call_ = false;
};

}  // namespace tandem::dialect
