// Where turns lie in a rendered conversation: it is rendered once more with marks in place of their
// words, so that what is left between them is the template's own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/request.h"
#include "text/tokenizer.h"

namespace tandem::chat {

/// A turn whose place is looked for.
struct MarkedTurn {
  size_t message = 0;          // its index in the conversation
  bool asks_thinking = false;  // whether the template would show thinking there
  bool asks_text = false;      // whether it would show text, also where there is none
};

/// Positions in a marked rendering, whose marks are taken out.
struct TurnPlace {
  size_t begin = std::string::npos;  // of its first mark
  size_t end = 0;                    // of its last mark
  bool shows_thinking = false;
  bool shows_text = false;
  bool shows_last_call = false;
  bool ends_in_text = false;   // the last mark stands for its text
  std::optional<size_t> next;  // where the text of the message behind it begins
};

struct MarkedText {
  std::string text;
  std::vector<TurnPlace> places;  // one for each turn
};

/// The messages with marks in place of what these turns say. Requires plain messages.
Json with_marks(Json messages, const std::vector<MarkedTurn>& turns);

/// What was rendered of them.
MarkedText read_marks(std::string_view rendered, size_t turns);

/// Knows the tokens that end a turn, by their spelling. Immutable.
class TurnEnds {
 public:
  /// `eos`: what ends answers. `markers`: of the dialect, whose special tokens are inside of turns.
  TurnEnds(const text::Tokenizer& tokenizer,
           const std::vector<text::TokenId>& eos,
           const std::vector<std::string>& markers);

  /// Where the first one begins in [from, limit); of turns that end in text, a special token of the
  /// markers too, when there is no other.
  std::optional<size_t> find(std::string_view text, size_t from, size_t limit, bool in_text) const;

 private:
  static std::optional<size_t> first(const std::vector<std::string>& spellings,
                                     std::string_view text,
                                     size_t from,
                                     size_t limit);

  std::vector<std::string> ends_;
  std::vector<std::string> special_;
};

}  // namespace tandem::chat
