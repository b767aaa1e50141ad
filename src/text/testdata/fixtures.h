// Small tokenizers for tests of this folder and of those above it.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "text/tokenizer.h"

namespace tandem::text {

inline std::string read_testdata(const std::string& name) {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/src/text/testdata/" + name, std::ios::binary);
  TANDEM_CHECK(in.good(), "no test data {}", name);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Tokenizer load_fixture(const std::string& name) {
  auto tokenizer = Tokenizer::from_json(read_testdata(name));
  TANDEM_CHECK(tokenizer.has_value(), "{}", tokenizer.error().message);
  return std::move(tokenizer).value();
}

/// GPT-2 style bytes; <|im_end|> ends, <think> and </think> mark thinking.
inline Tokenizer byte_level_fixture() { return load_fixture("byte_level.json"); }

/// SentencePiece style with byte fallback; </s> ends, [THINK] and [/THINK] mark thinking.
inline Tokenizer metaspace_fixture() { return load_fixture("metaspace.json"); }

}  // namespace tandem::text
