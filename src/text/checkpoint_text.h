// What a checkpoint says about text: its tokenizer, its chat template, its end-of-text tokens.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/checkpoint.h"
#include "text/template.h"
#include "text/tokenizer.h"

namespace tandem::text {

/// Files beside the weights, as text; empty when there is none.
struct TokenizerFiles {
  std::string tokenizer_json = {};
  std::string tokenizer_config = {};
  std::string special_tokens_map = {};
  std::string generation_config = {};
  std::string chat_template_jinja = {};
  std::string chat_template_json = {};  // {"chat_template": …}, an older place for it
};

/// Everything that turns conversations into tokens and back. Immutable; shared by requests.
struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null when the checkpoint has none
  std::vector<TokenId> eos;                           // any of them ends an answer; sorted
  std::optional<ThinkingMarkers> thinking;
  std::string
      tool_parser;  // "tool_parser_type" of tokenizer_config.json, where converters left one
};

/// From a folder's files and its config.json. kCorrupt names the file; kNotFound when there is no
/// tokenizer.json. End-of-text ids: generation_config's, else config's, and the tokenizer's own.
Result<ModelText> load_model_text(const TokenizerFiles& files, const nlohmann::json& config);

/// From the files of a folder, which needs no weights.
Result<ModelText> load_folder_text(const std::filesystem::path& folder,
                                   const nlohmann::json& config);

/// From a folder of files or from the metadata of a GGUF file.
Result<ModelText> load_model_text(const format::Checkpoint& checkpoint);

}  // namespace tandem::text
