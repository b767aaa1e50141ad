// Owners for what the Rust bridge makes. bridge.cpp is the only file that includes its C header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct tb_tokenizer;
struct tb_template;
struct tb_grammar;
struct tb_matcher;

namespace tandem::text::bridge {

struct Deleter {
  void operator()(tb_tokenizer* handle) const;
  void operator()(tb_template* handle) const;
  void operator()(tb_grammar* handle) const;
  void operator()(tb_matcher* handle) const;
};

using TokenizerHandle = std::unique_ptr<tb_tokenizer, Deleter>;
using TemplateHandle = std::unique_ptr<tb_template, Deleter>;
using GrammarHandle = std::unique_ptr<tb_grammar, Deleter>;
using MatcherHandle = std::unique_ptr<tb_matcher, Deleter>;

/// One entry of a vocabulary; the views live as long as the tokenizer. All empty for an id without
/// a token.
struct TokenView {
  std::string_view text;
  std::string_view bytes;
  bool present = false;
  bool special = false;
  bool added = false;
};

struct EncodeFlags {
  bool add_special = false;
  bool special_as_text = false;
};

/// Failures carry the bridge's message: kCorrupt for unreadable files, kInvalid for what the caller
/// gave, kInternal for a panic.
Result<TokenizerHandle> make_tokenizer(std::string_view json);
Result<std::vector<uint32_t>> encode(const tb_tokenizer& tokenizer,
                                     std::string_view text,
                                     EncodeFlags flags);
std::vector<TokenView> vocabulary(const tb_tokenizer& tokenizer);
bool strips_leading_space(const tb_tokenizer& tokenizer);

Result<TemplateHandle> make_template(std::string_view source);
Result<std::string> render(const tb_template& compiled,
                           std::string_view context_json,
                           int64_t unix_seconds,
                           int32_t utc_offset_seconds);

enum class GrammarKind : uint8_t { kJsonSchema, kRegex, kLark, kAmbiguousLark };

Result<GrammarHandle> make_grammar(const tb_tokenizer& tokenizer,
                                   uint32_t logits,
                                   const std::vector<uint32_t>& eos);
Result<MatcherHandle> compile(const tb_grammar& grammar, GrammarKind kind, std::string_view source);
Result<MatcherHandle> clone(const tb_matcher& matcher);
Status fill_mask(tb_matcher& matcher, std::vector<uint32_t>& mask);
Status consume(tb_matcher& matcher, const std::vector<uint32_t>& ids);
Status rollback(tb_matcher& matcher, size_t count);
Result<size_t> accepted(tb_matcher& matcher, const std::vector<uint32_t>& ids);
Result<bool> may_end(tb_matcher& matcher);
Result<bool> has_ended(const tb_matcher& matcher);
/// About what it takes in memory before it has taken anything, in bytes.
size_t bytes(const tb_matcher& matcher);
/// How many parts of rules the last mask followed.
size_t followed(const tb_matcher& matcher);

/// Panics inside the bridge; returns what came back. For tests.
Status panic_for_test();

}  // namespace tandem::text::bridge
