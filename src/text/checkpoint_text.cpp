#include "text/checkpoint_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "text/gguf_text.h"

namespace tandem::text {
namespace {

using StringMap = std::map<std::string, std::string>;

Result<Json> parse_object(const std::string& text, const char* file) {
  if (text.empty()) return Json(Json::object());
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return Error{.code = ErrorCode::kCorrupt,
                 .message = fmt::format("{} is not a JSON object", file)};
  }
  return json;
}

/// A special token is written as a string or as {"content": string, …}.
std::optional<std::string> token_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return std::nullopt;
}

void add_special(const Json& source, StringMap& special) {
  for (const auto& [name, value] : source.items()) {
    if (!name.ends_with("_token") || name.starts_with("add_")) continue;
    if (const auto text = token_text(value)) special.emplace(name, *text);
  }
}

void add_eos(const nlohmann::json& value, std::set<TokenId>& eos) {
  if (value.is_number_integer()) eos.insert(value.get<TokenId>());
  if (!value.is_array()) return;
  for (const auto& id : value) add_eos(id, eos);
}

std::set<TokenId> eos_ids(const nlohmann::json& config,
                          const Json& generation,
                          const StringMap& special,
                          const Tokenizer& tokenizer) {
  std::set<TokenId> eos;
  if (generation.contains("eos_token_id") && !generation["eos_token_id"].is_null()) {
    add_eos(nlohmann::json(generation["eos_token_id"]), eos);
  } else if (config.is_object()) {
    if (config.contains("eos_token_id")) add_eos(config["eos_token_id"], eos);
    if (eos.empty() && config.contains("text_config")) {
      const auto& nested = config["text_config"];
      if (nested.is_object() && nested.contains("eos_token_id"))
        add_eos(nested["eos_token_id"], eos);
    }
  }
  if (const auto own = special.find("eos_token"); own != special.end()) {
    if (const auto id = tokenizer.id(own->second)) eos.insert(*id);
  }
  std::erase_if(eos, [](TokenId id) { return id < 0; });
  return eos;
}

/// The variants of a chat template: a string, or a list of {name, template}.
Result<StringMap> template_sources(const Json& value) {
  StringMap sources;
  if (value.is_string()) sources["default"] = value.get<std::string>();
  if (!value.is_array()) return sources;
  for (const Json& entry : value) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template") ||
        !entry["name"].is_string() || !entry["template"].is_string()) {
      return Error{.code = ErrorCode::kCorrupt,
                   .message = "chat_template is a list, but not of {name, template}"};
    }
    sources[entry["name"].get<std::string>()] = entry["template"].get<std::string>();
  }
  return sources;
}

Result<StringMap> find_template(const TokenizerFiles& files, const Json& tokenizer_config) {
  if (!files.chat_template_jinja.empty()) return StringMap{{"default", files.chat_template_jinja}};
  if (tokenizer_config.contains("chat_template")) {
    return template_sources(tokenizer_config["chat_template"]);
  }
  auto older = parse_object(files.chat_template_json, "chat_template.json");
  if (!older) return older.error();
  if (older->contains("chat_template")) return template_sources((*older)["chat_template"]);
  return StringMap{};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Result<ModelText> load_model_text(const TokenizerFiles& files, const nlohmann::json& config) {
  if (files.tokenizer_json.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "the checkpoint has no tokenizer.json (other formats are not read)"};
  }
  auto tokenizer_config = parse_object(files.tokenizer_config, "tokenizer_config.json");
  if (!tokenizer_config) return tokenizer_config.error();
  auto special_map = parse_object(files.special_tokens_map, "special_tokens_map.json");
  if (!special_map) return special_map.error();
  auto generation = parse_object(files.generation_config, "generation_config.json");
  if (!generation) return generation.error();
  auto tokenizer = Tokenizer::from_json(files.tokenizer_json);
  if (!tokenizer) return tokenizer.error();

  ModelText result;
  result.tokenizer = std::make_shared<const Tokenizer>(std::move(tokenizer).value());
  StringMap special;
  add_special(*tokenizer_config, special);
  add_special(*special_map, special);
  const auto eos = eos_ids(config, *generation, special, *result.tokenizer);
  result.eos.assign(eos.begin(), eos.end());
  result.thinking = result.tokenizer->thinking_markers();
  if (tokenizer_config->contains("tool_parser_type") &&
      (*tokenizer_config)["tool_parser_type"].is_string()) {
    result.tool_parser = (*tokenizer_config)["tool_parser_type"].get<std::string>();
  }
  auto sources = find_template(files, *tokenizer_config);
  if (!sources) return sources.error();
  if (!sources->empty()) {
    auto chat = ChatTemplate::compile(*sources, std::move(special));
    if (!chat) return chat.error();
    result.chat_template = std::make_shared<const ChatTemplate>(std::move(chat).value());
  }
  return result;
}

Result<ModelText> load_folder_text(const std::filesystem::path& folder,
                                   const nlohmann::json& config) {
  return load_model_text(
      TokenizerFiles{.tokenizer_json = read_file(folder / "tokenizer.json"),
                     .tokenizer_config = read_file(folder / "tokenizer_config.json"),
                     .special_tokens_map = read_file(folder / "special_tokens_map.json"),
                     .generation_config = read_file(folder / "generation_config.json"),
                     .chat_template_jinja = read_file(folder / "chat_template.jinja"),
                     .chat_template_json = read_file(folder / "chat_template.json")},
      config);
}

Result<ModelText> load_model_text(const format::Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return load_gguf_text(*checkpoint.gguf());
  return load_folder_text(checkpoint.directory(), checkpoint.config());
}

}  // namespace tandem::text
