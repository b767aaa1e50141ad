// A model with any chat template over a small tokenizer, a scripted generator and a memory of
// turns.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "chat/local_service.h"
#include "chat/testdata/harness.h"
#include "gen/fake.h"

namespace tandem::chat {

/// What is special in a template's text: <|…|>, <｜…｜>, [NAME], <tag_of_words>, and their like.
inline std::set<std::string> special_words(const std::string& text) {
  static const std::regex kForm(
      R"(<\|[^|<>{}'"\s]+\|>|<\|[A-Za-z_/]+>|<[A-Za-z_]+\|>|<｜[^｜<>]*｜>|\[/?[A-Z_]+\]|</?s>|)"
      R"(</?(?:start|end)_[a-z_]+>|</?[a-z]+:[a-z_]+>|</?think>|</?tool_call>|\]~!b\[|\]~b\]|\[e~\[)");
  std::set<std::string> words(std::sregex_token_iterator(text.begin(), text.end(), kForm), {});
  return words;
}

/// The small byte-level tokenizer with further special tokens.
inline std::string tokenizer_with(std::set<std::string> words) {
  Json tokenizer = Json::parse(text::read_testdata("byte_level.json"));
  for (Json& token : tokenizer["added_tokens"]) {  // only models that think have such tokens
    auto& word = token["content"].get_ref<std::string&>();
    if (word.ends_with("think>") && !words.contains(word)) word = "<unused " + word;
  }
  int id = 0;
  for (const Json& token : tokenizer["added_tokens"]) {
    words.erase(token["content"].get<std::string>());
    id = std::max(id, token["id"].get<int>());
  }
  for (const std::string& word : words) {
    Json token = tokenizer["added_tokens"][0];
    token["id"] = ++id;
    token["content"] = word;
    tokenizer["added_tokens"].push_back(token);
  }
  return tokenizer.dump();
}

struct ReplayModelParts {
  std::string chat_template;
  std::vector<std::string> eos = {"<|im_end|>"};
  std::string dialect = {};          // empty: as the template shows
  std::set<std::string> words = {};  // further special tokens
  Json template_arguments = Json::object();
};

class ReplayModel {
 public:
  explicit ReplayModel(const ReplayModelParts& parts,
                       std::shared_ptr<replay::Memory> kept = nullptr)
      : model(make(parts)),
        memory(kept ? std::move(kept)
                    : std::make_shared<replay::Memory>(replay::MemoryLimits{}, clock)),
        fake(
            {.vocab = static_cast<uint32_t>(model.tokenizer->size()), .max_context = 1 << 20},
            [this](const gen::Request&) { return reply; },
            gen::Fake::Delivery::kOnDemand),
        service(fake,
                model,
                {.id = "m", .has_chat_template = true},
                {.template_arguments = parts.template_arguments,
                 .tool_dialect = parts.dialect,
                 .memory = memory,
                 .handle_key = "key"}) {}

  /// Tokens that nobody would encode the text as: its special tokens, and one for each other byte.
  std::vector<gen::TokenId> spelled(const std::string& text) const {
    std::vector<gen::TokenId> ids;
    for (size_t at = 0; at < text.size();) {
      const auto [id, size] = longest(text.substr(at, 64));
      ids.push_back(id);
      at += size;
    }
    return ids;
  }

  /// The model says this and ends with that token (none: at its limit). What the client saw.
  Seen say(Conversation talk, const std::string& text, const std::string& stop) {
    reply = {.tokens = spelled(text)};
    drawn = reply.tokens;
    if (!stop.empty()) reply.tokens.push_back(*model.tokenizer->id(stop));
    reply.reason = stop.empty() ? gen::FinishReason::kLength : gen::FinishReason::kStop;
    Seen seen;
    Request request;
    request.id = fmt::format("r{}", ++requests);
    request.salt = salt;
    request.input = std::move(talk);
    const auto taken =
        service.submit(std::move(request), [&seen](const Event& event) { seen.add(event); });
    refusal = taken ? "" : taken.error().message;
    if (taken) divergence = taken->divergence;
    while (fake.step()) {
    }
    return seen;
  }

  std::vector<gen::TokenId> prompt() const { return fake.submitted().back().prompt; }

  std::string text_of(const std::vector<gen::TokenId>& ids) const {
    std::string text;
    for (const gen::TokenId id : ids) text += model.tokenizer->bytes(id);
    return text;
  }

  SteadyClock clock;
  text::ModelText model;
  std::shared_ptr<replay::Memory> memory;
  gen::FakeReply reply;
  gen::Fake fake;
  LocalService service;
  std::string salt;
  std::vector<gen::TokenId> drawn;  // by the last answer, without its end
  std::optional<Divergence> divergence;
  std::string refusal;
  int requests = 0;

 private:
  static text::ModelText make(const ReplayModelParts& parts) {
    std::set<std::string> words = special_words(parts.chat_template);
    words.insert(parts.words.begin(), parts.words.end());
    words.insert(parts.eos.begin(), parts.eos.end());
    const std::string tokenizer = tokenizer_with(std::move(words));
    const auto known = text::Tokenizer::from_json(tokenizer);
    TANDEM_CHECK(known.has_value(), "{}", known.error().message);
    Json eos = Json::array();
    for (const std::string& word : parts.eos) eos.push_back(*known->id(word));
    auto made = text::load_model_text(
        text::TokenizerFiles{
            .tokenizer_json = tokenizer,
            .tokenizer_config = Json{{"eos_token", parts.eos.front()}, {"bos_token", "<s>"}}.dump(),
            .chat_template_jinja = parts.chat_template},
        nlohmann::json{{"eos_token_id", eos}});
    TANDEM_CHECK(made.has_value(), "{}", made.error().message);
    return std::move(made).value();
  }

  std::pair<gen::TokenId, size_t> longest(const std::string& text) const {
    for (size_t size = text.size(); size > 1; --size) {
      const auto id = model.tokenizer->id(text.substr(0, size));
      if (id && (model.tokenizer->is_special(*id) || text[0] == '<')) return {*id, size};
    }
    for (gen::TokenId id = 0; id < 256; ++id) {
      if (model.tokenizer->bytes(id) == std::string_view(text).substr(0, 1)) return {id, 1};
    }
    return {0, 1};
  }
};

/// The calls that a client saw.
inline Json calls_seen(const Seen& seen) {
  Json calls = Json::array();
  for (const Event& event : seen.events) {
    if (const auto* started = std::get_if<CallStarted>(&event.body)) {
      calls.push_back(Json{{"id", started->id},
                           {"type", "function"},
                           {"function", Json{{"name", started->name}, {"arguments", ""}}}});
    } else if (const auto* piece = std::get_if<CallArguments>(&event.body)) {
      Json& arguments = calls.back()["function"]["arguments"];
      arguments = arguments.get<std::string>() + piece->json;
    }
  }
  return calls;
}

}  // namespace tandem::chat
