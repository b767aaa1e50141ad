#include "text/bridge.h"

#include <tandem_bridge.h>

#include <algorithm>
#include <utility>

namespace tandem::text::bridge {
namespace {

const uint8_t* data(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

std::string_view view(const uint8_t* bytes, size_t length) {
  return {reinterpret_cast<const char*>(bytes), length};
}

Error failure(int64_t code, ErrorCode otherwise) {
  size_t length = 0;
  const uint8_t* message = tb_last_error(&length);
  return {.code = code == TB_PANICKED ? ErrorCode::kInternal : otherwise,
          .message = std::string(view(message, length))};
}

Status status(int32_t code) {
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  return {};
}

Result<bool> flag(int64_t code) {
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  return code != 0;
}

}  // namespace

void Deleter::operator()(tb_tokenizer* handle) const { tb_tokenizer_free(handle); }
void Deleter::operator()(tb_template* handle) const { tb_template_free(handle); }
void Deleter::operator()(tb_grammar* handle) const { tb_grammar_free(handle); }
void Deleter::operator()(tb_matcher* handle) const { tb_matcher_free(handle); }

Result<TokenizerHandle> make_tokenizer(std::string_view json) {
  tb_tokenizer* handle = nullptr;
  const int32_t code = tb_tokenizer_new(data(json), json.size(), &handle);
  if (code < 0) return failure(code, ErrorCode::kCorrupt);
  return TokenizerHandle(handle);
}

Result<std::vector<uint32_t>> encode(const tb_tokenizer& tokenizer,
                                     std::string_view text,
                                     EncodeFlags flags) {
  uint32_t bits = 0;
  if (flags.add_special) bits |= TB_ENCODE_ADD_SPECIAL;
  if (flags.special_as_text) bits |= TB_ENCODE_SPECIAL_AS_TEXT;
  tb_ids ids{};
  const int32_t code = tb_tokenizer_encode(&tokenizer, data(text), text.size(), bits, &ids);
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  std::vector<uint32_t> result(ids.data, ids.data + ids.len);
  tb_ids_free(ids);
  return result;
}

std::vector<TokenView> vocabulary(const tb_tokenizer& tokenizer) {
  const int64_t size = tb_tokenizer_size(&tokenizer);
  std::vector<TokenView> tokens(size > 0 ? static_cast<size_t>(size) : 0);
  for (size_t id = 0; id < tokens.size(); ++id) {
    tb_token token{};
    if (tb_tokenizer_token(&tokenizer, static_cast<uint32_t>(id), &token) < 0) continue;
    tokens[id] = {.text = view(token.text, token.text_len),
                  .bytes = view(token.bytes, token.bytes_len),
                  .present = true,
                  .special = (token.flags & TB_TOKEN_SPECIAL) != 0,
                  .added = (token.flags & TB_TOKEN_ADDED) != 0};
  }
  return tokens;
}

bool strips_leading_space(const tb_tokenizer& tokenizer) {
  return tb_tokenizer_strips_leading_space(&tokenizer) > 0;
}

Result<TemplateHandle> make_template(std::string_view source) {
  tb_template* handle = nullptr;
  const int32_t code = tb_template_new(data(source), source.size(), &handle);
  if (code < 0) return failure(code, ErrorCode::kCorrupt);
  return TemplateHandle(handle);
}

Result<std::string> render(const tb_template& compiled,
                           std::string_view context_json,
                           int64_t unix_seconds,
                           int32_t utc_offset_seconds) {
  tb_text text{};
  const int32_t code = tb_template_render(&compiled, data(context_json), context_json.size(),
                                          unix_seconds, utc_offset_seconds, &text);
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  std::string result(view(text.data, text.len));
  tb_text_free(text);
  return result;
}

Result<GrammarHandle> make_grammar(const tb_tokenizer& tokenizer,
                                   uint32_t logits,
                                   const std::vector<uint32_t>& eos) {
  tb_grammar* handle = nullptr;
  const int32_t code = tb_grammar_new(&tokenizer, logits, eos.data(), eos.size(), &handle);
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  return GrammarHandle(handle);
}

Result<MatcherHandle> compile(const tb_grammar& grammar,
                              GrammarKind kind,
                              std::string_view source) {
  static constexpr uint32_t kKinds[] = {TB_JSON_SCHEMA, TB_REGEX, TB_LARK, TB_AMBIGUOUS_LARK};
  tb_matcher* handle = nullptr;
  const int32_t code = tb_grammar_compile(&grammar, kKinds[static_cast<size_t>(kind)], data(source),
                                          source.size(), &handle);
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  return MatcherHandle(handle);
}

Result<MatcherHandle> clone(const tb_matcher& matcher) {
  tb_matcher* handle = nullptr;
  const int32_t code = tb_matcher_clone(&matcher, &handle);
  if (code < 0) return failure(code, ErrorCode::kInvalid);
  return MatcherHandle(handle);
}

Status fill_mask(tb_matcher& matcher, std::vector<uint32_t>& mask) {
  return status(tb_matcher_mask(&matcher, mask.data(), mask.size()));
}

Status consume(tb_matcher& matcher, const std::vector<uint32_t>& ids) {
  return status(tb_matcher_consume(&matcher, ids.data(), ids.size()));
}

Status rollback(tb_matcher& matcher, size_t count) {
  return status(tb_matcher_rollback(&matcher, count));
}

Result<size_t> accepted(tb_matcher& matcher, const std::vector<uint32_t>& ids) {
  const int64_t count = tb_matcher_accepted(&matcher, ids.data(), ids.size());
  if (count < 0) return failure(count, ErrorCode::kInvalid);
  return static_cast<size_t>(count);
}

Result<bool> may_end(tb_matcher& matcher) { return flag(tb_matcher_may_end(&matcher)); }

Result<bool> has_ended(const tb_matcher& matcher) { return flag(tb_matcher_has_ended(&matcher)); }

size_t bytes(const tb_matcher& matcher) {
  return static_cast<size_t>(std::max<int64_t>(tb_matcher_bytes(&matcher), 0));
}

size_t followed(const tb_matcher& matcher) {
  return static_cast<size_t>(std::max<int64_t>(tb_matcher_followed(&matcher), 0));
}

Status panic_for_test() { return status(tb_test_panic()); }

}  // namespace tandem::text::bridge
