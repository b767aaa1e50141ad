#include "text/tokenizer.h"

#include <utility>

namespace tandem::text {
namespace {

/// Tokens whose presence tells a convention, and the strings that convention writes.
struct Convention {
  std::string_view name;
  std::string_view start_token;
  std::string_view end_token;
  std::string_view start;
  std::string_view end;
};

constexpr Convention kConventions[] = {
    {"think", "<think>", "</think>", "<think>", "</think>"},
    {"longcat", "<longcat_think>", "</longcat_think>", "<longcat_think>", "</longcat_think>"},
    {"think_colon", "<|think:start|>", "<|think:end|>", "<|think:start|>", "<|think:end|>"},
    {"gemma", "<|channel>", "<channel|>", "<|channel>thought", "<channel|>"},
    {"mistral", "[THINK]", "[/THINK]", "[THINK]", "[/THINK]"},
    {"seed", "<seed:think>", "</seed:think>", "<seed:think>", "</seed:think>"},
    {"cohere", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},
    {"apertus", "<|inner_prefix|>", "<|inner_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"},
    {"minimax", "<mm:think>", "</mm:think>", "<mm:think>", "</mm:think>"},
    {"kimi_k3", "<|open|>", "<|close|>", "<|open|>think<|sep|>", "<|close|>think<|sep|>"},
};

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view json) {
  auto handle = bridge::make_tokenizer(json);
  if (!handle) return handle.error();
  return Tokenizer(std::move(handle).value());
}

Tokenizer::Tokenizer(bridge::TokenizerHandle handle)
    : handle_(std::move(handle)),
      tokens_(bridge::vocabulary(*handle_)),
      strips_leading_space_(bridge::strips_leading_space(*handle_)) {
  ids_.reserve(tokens_.size());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].present) ids_[tokens_[id].text] = static_cast<TokenId>(id);
  }
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, bool add_special) const {
  auto ids = bridge::encode(*handle_, text, {.add_special = add_special});
  if (!ids) return ids.error();
  return std::vector<TokenId>(ids->begin(), ids->end());
}

std::optional<TokenId> Tokenizer::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::stands_alone(TokenId id) const {
  const bridge::TokenView& token = at(id);
  const bool is_tag =
      token.text.size() > 2 && token.text.starts_with('<') && token.text.ends_with('>');
  return token.special ||
         (token.added && is_tag && token.bytes.size() != 1);  // as the bridge has it
}

std::optional<ThinkingMarkers> Tokenizer::thinking_markers() const {
  for (const Convention& known : kConventions) {
    if (ids_.contains(known.start_token) && ids_.contains(known.end_token)) {
      return ThinkingMarkers{.start = std::string(known.start), .end = std::string(known.end)};
    }
  }
  return std::nullopt;
}

std::optional<ThinkingMarkers> thinking_markers_named(std::string_view name) {
  for (const Convention& known : kConventions) {
    if (name != known.name) continue;
    return ThinkingMarkers{.start = std::string(known.start), .end = std::string(known.end)};
  }
  return std::nullopt;
}

std::vector<std::string> thinking_names() {
  std::vector<std::string> names;
  for (const Convention& known : kConventions) names.emplace_back(known.name);
  return names;
}

const bridge::TokenView& Tokenizer::at(TokenId id) const {
  static constexpr bridge::TokenView kNone;
  if (id < 0 || id >= size()) return kNone;
  return tokens_[static_cast<size_t>(id)];
}

}  // namespace tandem::text
