// Tokenizers inside GGUF files: their arrays rewritten as a tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/checkpoint_text.h"

namespace tandem::format {
class Gguf;
}

namespace tandem::text {

/// The tokenizer.ggml.* metadata that shape a tokenizer. Types: 1 normal, 2 unknown, 3 control, 4
/// user-defined, 5 unused, 6 byte.
struct GgufVocabulary {
  std::string model = {};  // "gpt2": byte-level BPE; "llama", "gemma4": SentencePiece's
  std::string pre = {};    // how text is split before merging; only for "gpt2"
  std::vector<std::string> tokens = {};
  std::vector<double> scores = {};
  std::vector<int64_t> types = {};
  std::vector<std::string> merges = {};
  std::optional<TokenId> bos = {};
  std::optional<TokenId> eos = {};
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;  // not for "gpt2"
};

/// The same tokenizer as a tokenizer.json. kUnsupported names a model or a splitting rule that is
/// not known; kCorrupt when the arrays do not fit each other.
Result<std::string> to_tokenizer_json(const GgufVocabulary& vocabulary);

/// Tokenizer, chat template and end-of-text ids of a GGUF file.
Result<ModelText> load_gguf_text(const format::Gguf& gguf);

}  // namespace tandem::text
