// C interface of the Rust crate in this folder: tokenizers, chat templates, grammar masks.
//
// Rules
//   Handles   Made by tb_X_new (or compile, clone) into *out, freed once by tb_X_free (NULL is fine).
//             *out is written only on success.
//   Text in   (pointer, length) UTF-8, no NUL needed; borrowed for the call only.
//   Data out  tb_text and tb_ids belong to the caller, who gives them back to tb_text_free or
//             tb_ids_free (never to free()). Views borrow from the handle and live as long as it.
//   Failures  A negative code; tb_last_error() has the message, per thread, until that thread's next
//             failing call. After TB_PANICKED free the handle and do not use it otherwise.
//   Threads   Tokenizers, templates and grammars may be used by many threads at once; a matcher by
//             one at a time.
#ifndef TANDEM_BRIDGE_H_
#define TANDEM_BRIDGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TB_OK = 0,
  TB_FAILED = -1,
  TB_PANICKED = -2,  // a panic was caught
  TB_RAISED = -3,    // the template refused the conversation: the message is the template's own
};

typedef struct tb_text {
  uint8_t* data;
  size_t len;
  size_t cap;
} tb_text;

typedef struct tb_ids {
  uint32_t* data;
  size_t len;
  size_t cap;
} tb_ids;

const uint8_t* tb_last_error(size_t* len);
void tb_text_free(tb_text text);
void tb_ids_free(tb_ids ids);
// Panics inside; returns TB_PANICKED.
int32_t tb_test_panic(void);

// ---- tokenizer ------------------------------------------------------------------------------

typedef struct tb_tokenizer tb_tokenizer;

enum {
  TB_ENCODE_ADD_SPECIAL = 1,      // add what the post-processor adds, such as a leading BOS
  TB_ENCODE_SPECIAL_AS_TEXT = 2,  // do not recognise special tokens inside the text
};

enum {
  TB_TOKEN_PRESENT = 1,
  TB_TOKEN_SPECIAL = 2,  // an added token marked special
  TB_TOKEN_ADDED = 4,
};

typedef struct tb_token {
  const uint8_t* text;  // as spelled in the vocabulary
  size_t text_len;
  const uint8_t* bytes;  // what it stands for in text; may be part of a character
  size_t bytes_len;
  uint32_t flags;
} tb_token;

// From the bytes of a tokenizer.json. Truncation and padding in it are ignored.
int32_t tb_tokenizer_new(const uint8_t* json, size_t len, tb_tokenizer** out);
void tb_tokenizer_free(tb_tokenizer* tokenizer);
int32_t tb_tokenizer_encode(
    const tb_tokenizer* tokenizer, const uint8_t* text, size_t len, uint32_t flags, tb_ids* out);
// One past the largest id.
int64_t tb_tokenizer_size(const tb_tokenizer* tokenizer);
// Id of a token spelled exactly so; TB_FAILED when there is none.
int64_t tb_tokenizer_id(const tb_tokenizer* tokenizer, const uint8_t* token, size_t len);
// Fills a view into the tokenizer; TB_FAILED when the id has no token.
int32_t tb_tokenizer_token(const tb_tokenizer* tokenizer, uint32_t id, tb_token* out);
// 1 when decoding drops one space at the start of a text.
int64_t tb_tokenizer_strips_leading_space(const tb_tokenizer* tokenizer);

// ---- chat templates -------------------------------------------------------------------------

typedef struct tb_template tb_template;

int32_t tb_template_new(const uint8_t* source, size_t len, tb_template** out);
void tb_template_free(tb_template* compiled);
// context: a JSON object. The time is what strftime_now shows.
int32_t tb_template_render(const tb_template* compiled,
                           const uint8_t* context,
                           size_t len,
                           int64_t unix_seconds,
                           int32_t utc_offset_seconds,
                           tb_text* out);

// ---- grammars -------------------------------------------------------------------------------

typedef struct tb_grammar tb_grammar;
typedef struct tb_matcher tb_matcher;

// Lark that may read a text in many ways is followed less far: it costs the square.
enum { TB_JSON_SCHEMA = 0, TB_REGEX = 1, TB_LARK = 2, TB_AMBIGUOUS_LARK = 3 };

// Prepares the vocabulary (up to a second for 250k tokens). The tokenizer may be freed afterwards.
// logits: entries of a logits row, at least the vocabulary's size.
int32_t tb_grammar_new(const tb_tokenizer* tokenizer,
                       uint32_t logits,
                       const uint32_t* eos,
                       size_t eos_count,
                       tb_grammar** out);
void tb_grammar_free(tb_grammar* grammar);
// Compiles one answer's grammar. Bounded in source size and patterns per allOf; still give it a
// worker thread, hostile sources can take seconds.
int32_t tb_grammar_compile(
    const tb_grammar* grammar, uint32_t kind, const uint8_t* source, size_t len, tb_matcher** out);
// The copy is independent of the original.
int32_t tb_matcher_clone(const tb_matcher* matcher, tb_matcher** out);
void tb_matcher_free(tb_matcher* matcher);
// Fills mask (words = (logits + 31) / 32): bit id % 32 of word id / 32 is set when id may come next.
// A complete grammar allows the end-of-text ids only. An error is final for the matcher.
int32_t tb_matcher_mask(tb_matcher* matcher, uint32_t* mask, size_t words);
int32_t tb_matcher_consume(tb_matcher* matcher, const uint32_t* ids, size_t count);
// Takes back the last count consumed ids.
int32_t tb_matcher_rollback(tb_matcher* matcher, size_t count);
// How many of ids the grammar would take from here; does not move.
int64_t tb_matcher_accepted(tb_matcher* matcher, const uint32_t* ids, size_t count);
// 1 when the answer may end here.
int64_t tb_matcher_may_end(tb_matcher* matcher);
// 1 when nothing can follow.
int64_t tb_matcher_has_ended(const tb_matcher* matcher);
// About what the matcher takes in memory before it has taken anything.
int64_t tb_matcher_bytes(const tb_matcher* matcher);
// How many parts of rules the last mask followed: what it cost, whatever the machine does.
int64_t tb_matcher_followed(const tb_matcher* matcher);

#ifdef __cplusplus
}
#endif

#endif  // TANDEM_BRIDGE_H_
