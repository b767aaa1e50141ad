// Draws answers under a grammar's masks, in a vocabulary of bytes. For tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "dialect/grammar.h"
#include "text/bridge.h"
#include "text/testdata/fixtures.h"

namespace tandem::chat {

struct GrammarWalk {
  static constexpr uint32_t kLogits = 330;
  static constexpr int kMostTokens = 700;
  static constexpr const char* kEndless = "endless";

  text::Tokenizer tokenizer = text::byte_level_fixture();
  uint32_t end = static_cast<uint32_t>(*tokenizer.id("<|im_end|>"));
  text::bridge::GrammarHandle grammar =
      std::move(text::bridge::make_grammar(tokenizer.handle(), kLogits, {end})).value();

  dialect::GrammarRequest request(const dialect::Tools& tools) const {
    return {.tools = tools, .token = [this](std::string_view text) -> std::optional<int32_t> {
              return tokenizer.id(text);
            }};
  }

  Result<text::bridge::MatcherHandle> compile(const std::string& source) const {
    return text::bridge::compile(*grammar, text::bridge::GrammarKind::kLark, source);
  }

  std::vector<uint32_t> allowed(tb_matcher& matcher) const {
    std::vector<uint32_t> mask((kLogits + 31) / 32, 0);
    REQUIRE(text::bridge::fill_mask(matcher, mask));
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < mask.size() * 32; ++id) {
      if ((mask[id / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
    }
    REQUIRE_FALSE(ids.empty());
    return ids;
  }

  /// Draws allowed tokens, the end wherever it may come. Where the text could be the beginning of
  /// one of the words, it mostly goes on with that: text that only a tag closes ends so.
  std::string draw(tb_matcher& matcher,
                   std::mt19937& random,
                   const std::vector<std::string>& words = {}) const {
    std::string text;
    for (int step = 0; step < kMostTokens; ++step) {
      const std::vector<uint32_t> ids = allowed(matcher);
      const bool may_end = std::ranges::find(ids, end) != ids.end();
      uint32_t id = may_end ? end : ids[random() % ids.size()];
      if (!may_end && random() % 8 != 0) id = towards(words, text, ids, random).value_or(id);
      const Status consumed = text::bridge::consume(matcher, {id});
      REQUIRE_MESSAGE(consumed.has_value(),
                      text << " + " << id << ": " << (consumed ? "" : consumed.error().message));
      if (id == end) return text;
      text += tokenizer.bytes(static_cast<text::TokenId>(id));
    }
    return kEndless;
  }

 private:
  /// A token that goes on with the word of which the text has most, or at times begins one.
  std::optional<uint32_t> towards(const std::vector<std::string>& words,
                                  const std::string& text,
                                  const std::vector<uint32_t>& ids,
                                  std::mt19937& random) const {
    std::optional<uint32_t> best;
    size_t most = 0;
    const bool may_begin = random() % 3 == 0;
    for (const std::string& word : words) {
      size_t size = std::min(text.size(), word.size() - 1);
      while (size > 0 && !text.ends_with(std::string_view(word).substr(0, size))) --size;
      if (size == 0 && !may_begin) continue;
      if (best && size <= most) continue;
      for (const uint32_t id : ids) {
        const std::string_view bytes = tokenizer.bytes(static_cast<text::TokenId>(id));
        if (bytes.empty() || !std::string_view(word).substr(size).starts_with(bytes)) continue;
        best = id;
        most = size;
        break;
      }
    }
    return best;
  }
};

}  // namespace tandem::chat
