#include "text/gguf_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/gguf.h"
#include "text/gguf_pretokenizers.h"

namespace tandem::text {
namespace {

using nlohmann::json;

enum Type : int64_t { kUnknown = 2, kControl = 3, kUserDefined = 4 };

Error corrupt(std::string message) {
  return {.code = ErrorCode::kCorrupt, .message = "the GGUF tokenizer " + std::move(message)};
}

int64_t type_of(const GgufVocabulary& vocabulary, size_t id) {
  return vocabulary.types.empty() ? 1 : vocabulary.types[id];
}

json added_tokens(const GgufVocabulary& vocabulary) {
  json added = json::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const int64_t type = type_of(vocabulary, id);
    if (type != kUnknown && type != kControl && type != kUserDefined) continue;
    added.push_back({{"id", id},
                     {"content", vocabulary.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

json vocab(const GgufVocabulary& vocabulary) {
  json map = json::object();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) map.emplace(vocabulary.tokens[id], id);
  return map;
}

/// Puts BOS before and EOS after a text, as the file asks.
json post_processor(const GgufVocabulary& vocabulary) {
  json single = json::array();
  json tokens = json::object();
  const auto add = [&](bool wanted, std::optional<TokenId> id) {
    if (!wanted || !id) return;
    const std::string& text = vocabulary.tokens[static_cast<size_t>(*id)];
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    tokens[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
  };
  add(vocabulary.add_bos, vocabulary.bos);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(vocabulary.add_eos, vocabulary.eos);
  if (tokens.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair",
           {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
          {"special_tokens", std::move(tokens)}};
}

json bpe(json vocab, json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

Result<json> listed_merges(const GgufVocabulary& vocabulary) {
  json merges = json::array();
  for (const std::string& merge : vocabulary.merges) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos) return corrupt(fmt::format("has a merge \"{}\"", merge));
    merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  return merges;
}

Result<json> byte_level_json(const GgufVocabulary& vocabulary) {
  auto rule = pretokenization(vocabulary.pre);
  if (!rule) return rule.error();
  auto merges = listed_merges(vocabulary);
  if (!merges) return merges;
  json model = bpe(vocab(vocabulary), *std::move(merges));
  model["ignore_merges"] = rule->ignore_merges;
  return json{{"normalizer", rule->normalizer},
              {"pre_tokenizer", rule->pre_tokenizer},
              {"decoder", {{"type", "ByteLevel"}}},
              {"model", std::move(model)}};
}

/// Every way to make a token from two others, those of the likeliest tokens first.
json merges_from_scores(const GgufVocabulary& vocabulary) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) ids.emplace(vocabulary.tokens[id], id);
  struct Merge {
    double score;
    size_t left;
    size_t right;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const int64_t type = type_of(vocabulary, id);
    if (type != 1 && type != kUserDefined) continue;
    const std::string_view token = vocabulary.tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      const auto right = ids.find(token.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({vocabulary.scores[id], left->second, right->second});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  json result = json::array();
  for (const Merge& merge : merges) {
    result.push_back({vocabulary.tokens[merge.left], vocabulary.tokens[merge.right]});
  }
  return result;
}

json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// gemma4's files list merges, others say by scores what is merged first.
Result<json> sentencepiece_json(const GgufVocabulary& vocabulary) {
  const bool has_list = vocabulary.model == "gemma4";
  if (!has_list && vocabulary.scores.size() != vocabulary.tokens.size())
    return corrupt("has no scores");
  auto merges = has_list ? listed_merges(vocabulary) : merges_from_scores(vocabulary);
  if (!merges) return merges;
  json normalizers = json::array();
  json decoders = json::array({replace("▁", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (vocabulary.add_space_prefix) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace(" ", "▁"));
  json model = bpe(vocab(vocabulary), *std::move(merges));
  model["byte_fallback"] = true;
  model["fuse_unk"] = true;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (type_of(vocabulary, id) == kUnknown) model["unk_token"] = vocabulary.tokens[id];
  }
  return json{{"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
              {"pre_tokenizer", nullptr},
              {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
              {"model", std::move(model)}};
}

Status check(const GgufVocabulary& vocabulary) {
  const size_t count = vocabulary.tokens.size();
  if (count == 0) return corrupt("has no tokens");
  if (!vocabulary.types.empty() && vocabulary.types.size() != count) {
    return corrupt(fmt::format("has {} tokens and {} types", count, vocabulary.types.size()));
  }
  for (const auto id : {vocabulary.bos, vocabulary.eos}) {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= count)) {
      return corrupt(fmt::format("has {} tokens, but names token {}", count, *id));
    }
  }
  return {};
}

std::optional<TokenId> token_id(const format::Gguf& gguf, const std::string& name) {
  const auto id = gguf.number("tokenizer.ggml." + name + "_token_id");
  if (!id || *id > 0x7FFFFFFF) return std::nullopt;
  return static_cast<TokenId>(*id);
}

std::string text_or(const format::Gguf& gguf, const char* key, const char* otherwise) {
  const std::string* text = gguf.text(key);
  return text != nullptr ? *text : otherwise;
}

Result<GgufVocabulary> read_vocabulary(const format::Gguf& gguf) {
  const auto* tokens = gguf.texts("tokenizer.ggml.tokens");
  if (tokens == nullptr) return corrupt("has no tokens");
  const auto* merges = gguf.texts("tokenizer.ggml.merges");
  GgufVocabulary result;
  result.model = text_or(gguf, "tokenizer.ggml.model", "");
  result.pre = text_or(gguf, "tokenizer.ggml.pre", "default");
  result.tokens = *tokens;
  result.scores = gguf.reals("tokenizer.ggml.scores");
  result.types = gguf.integers("tokenizer.ggml.token_type");
  if (merges != nullptr) result.merges = *merges;
  result.bos = token_id(gguf, "bos");
  result.eos = token_id(gguf, "eos");
  const bool adds_bos = result.model == "llama" || result.pre.starts_with("llama");
  result.add_bos = gguf.boolean("tokenizer.ggml.add_bos_token").value_or(adds_bos);
  result.add_eos = gguf.boolean("tokenizer.ggml.add_eos_token").value_or(false);
  result.add_space_prefix =
      gguf.boolean("tokenizer.ggml.add_space_prefix").value_or(result.model != "gemma4");
  return result;
}

std::map<std::string, std::string> special_strings(const format::Gguf& gguf,
                                                   const GgufVocabulary& vocabulary) {
  std::map<std::string, std::string> special;
  const std::pair<const char*, const char*> names[] = {{"bos", "bos_token"},
                                                       {"eos", "eos_token"},
                                                       {"unknown", "unk_token"},
                                                       {"padding", "pad_token"}};
  for (const auto& [key, name] : names) {
    const auto id = token_id(gguf, key);
    if (id && static_cast<size_t>(*id) < vocabulary.tokens.size()) {
      special[name] = vocabulary.tokens[static_cast<size_t>(*id)];
    }
  }
  return special;
}

}  // namespace

Result<std::string> to_tokenizer_json(const GgufVocabulary& vocabulary) {
  if (auto valid = check(vocabulary); !valid) return valid.error();
  Result<json> made = Error{.code = ErrorCode::kUnsupported,
                            .message = fmt::format("tokenizer.ggml.model \"{}\" is not supported "
                                                   "(known: gpt2, llama, gemma4)",
                                                   vocabulary.model)};
  if (vocabulary.model == "gpt2") made = byte_level_json(vocabulary);
  if (vocabulary.model == "llama" || vocabulary.model == "gemma4")
    made = sentencepiece_json(vocabulary);
  if (!made) return made.error();
  json root = std::move(made).value();
  root["version"] = "1.0";
  root["truncation"] = nullptr;
  root["padding"] = nullptr;
  root["added_tokens"] = added_tokens(vocabulary);
  root["post_processor"] = post_processor(vocabulary);
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<ModelText> load_gguf_text(const format::Gguf& gguf) {
  auto vocabulary = read_vocabulary(gguf);
  if (!vocabulary) return vocabulary.error();
  auto converted = to_tokenizer_json(*vocabulary);
  if (!converted) return converted.error();
  auto tokenizer = Tokenizer::from_json(*converted);
  if (!tokenizer) return tokenizer.error();

  ModelText result;
  result.tokenizer = std::make_shared<const Tokenizer>(std::move(tokenizer).value());
  result.thinking = result.tokenizer->thinking_markers();
  std::set<TokenId> eos;
  for (const char* name : {"eos", "eot", "eom"}) {
    if (const auto id = token_id(gguf, name)) eos.insert(*id);
  }
  result.eos.assign(eos.begin(), eos.end());
  if (const std::string* source = gguf.text("tokenizer.chat_template")) {
    auto chat = ChatTemplate::compile({{"default", *source}}, special_strings(gguf, *vocabulary));
    if (!chat) return chat.error();
    result.chat_template = std::make_shared<const ChatTemplate>(std::move(chat).value());
  }
  return result;
}

}  // namespace tandem::text
