// Text to token ids, and what each id stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/bridge.h"

namespace tandem::text {

using TokenId = int32_t;

/// Strings that open and close a model's thinking, such as <think> and </think>.
struct ThinkingMarkers {
  std::string start;
  std::string end;

  bool operator==(const ThinkingMarkers&) const = default;
};

/// The markers of a way to write thinking, such as "think" or "gemma"; unset for other names.
std::optional<ThinkingMarkers> thinking_markers_named(std::string_view name);
std::vector<std::string> thinking_names();

/// A vocabulary with its rules. Immutable; thread-safe.
class Tokenizer {
 public:
  /// From the bytes of a tokenizer.json. kCorrupt when it cannot be read or its decoder is of an
  /// unknown kind.
  static Result<Tokenizer> from_json(std::string_view json);

  /// With `add_special`, what the tokenizer puts around a text by default (such as BOS) is added.
  /// Special tokens spelled in the text are recognised. kInvalid when it is not UTF-8.
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special) const;

  /// One past the largest id.
  TokenId size() const { return static_cast<TokenId>(tokens_.size()); }

  /// Id of the token spelled exactly so in the vocabulary.
  std::optional<TokenId> id(std::string_view token) const;

  /// As spelled in the vocabulary; empty for unknown ids.
  std::string_view spelling(TokenId id) const { return at(id).text; }

  /// The bytes it stands for, perhaps part of a character; empty for unknown ids.
  std::string_view bytes(TokenId id) const { return at(id).bytes; }

  bool is_special(TokenId id) const { return at(id).special; }

  /// Whether masks of grammars take the token for a sign of its own, never for its letters.
  bool stands_alone(TokenId id) const;

  /// True when decoding drops one space at the start of a text (SentencePiece style).
  bool strips_leading_space() const { return strips_leading_space_; }

  /// The first known pair of which the vocabulary has both ends.
  std::optional<ThinkingMarkers> thinking_markers() const;

  const tb_tokenizer& handle() const { return *handle_; }

 private:
  explicit Tokenizer(bridge::TokenizerHandle handle);

  const bridge::TokenView& at(TokenId id) const;

  bridge::TokenizerHandle handle_;
  std::vector<bridge::TokenView> tokens_;
  std::unordered_map<std::string_view, TokenId> ids_;
  bool strips_leading_space_ = false;
};

}  // namespace tandem::text
