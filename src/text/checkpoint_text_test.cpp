#include "text/checkpoint_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "text/testdata/fixtures.h"

using tandem::ErrorCode;
using tandem::text::ChatContext;
using tandem::text::load_model_text;
using tandem::text::TokenId;
using tandem::text::TokenizerFiles;

namespace {

TokenizerFiles files() {
  return {.tokenizer_json = tandem::text::read_testdata("byte_level.json"),
          .tokenizer_config = R"({"eos_token": {"content": "<|im_end|>"}, "bos_token": null})"};
}

std::vector<TokenId> ids(const std::vector<std::string>& tokens) {
  const auto tokenizer = tandem::text::byte_level_fixture();
  std::vector<TokenId> result;
  for (const auto& token : tokens) result.push_back(*tokenizer.id(token));
  return result;
}

}  // namespace

TEST_CASE(
    "checkpoint text: generation_config's ends replace config's, the tokenizer's own is added") {
  const TokenId pad = ids({"<|pad|>"})[0];
  const TokenId end = ids({"<|endoftext|>"})[0];
  TokenizerFiles given = files();
  auto text = load_model_text(given, {{"eos_token_id", end}});
  REQUIRE(text);
  CHECK(text->eos == ids({"<|endoftext|>", "<|im_end|>"}));

  given.generation_config = nlohmann::json{{"eos_token_id", {pad}}}.dump();
  text = load_model_text(given, {{"eos_token_id", end}});
  REQUIRE(text);
  CHECK(text->eos == ids({"<|im_end|>", "<|pad|>"}));

  text = load_model_text(files(), {{"text_config", {{"eos_token_id", end}}}});
  REQUIRE(text);
  CHECK(text->eos == ids({"<|endoftext|>", "<|im_end|>"}));
}

TEST_CASE("checkpoint text: a template file comes before tokenizer_config's, then older places") {
  TokenizerFiles given = files();
  CHECK(load_model_text(given, {})->chat_template == nullptr);
  given.chat_template_json = R"({"chat_template": "older"})";
  CHECK(*load_model_text(given, {})->chat_template->render({}, {}) == "older");
  given.tokenizer_config =
      R"({"eos_token": "<|im_end|>", "chat_template": [{"name": "default", "template": "{{ eos_token }}"}]})";
  CHECK(*load_model_text(given, {})->chat_template->render({}, {}) == "<|im_end|>");
  given.chat_template_jinja = "file";
  CHECK(*load_model_text(given, {})->chat_template->render({}, {}) == "file");
}

TEST_CASE("checkpoint text: broken files are named") {
  TokenizerFiles given = files();
  given.tokenizer_json.clear();
  CHECK(load_model_text(given, {}).error().code == ErrorCode::kNotFound);
  given = files();
  given.special_tokens_map = "[]";
  CHECK(load_model_text(given, {}).error().message.find("special_tokens_map.json") !=
        std::string::npos);
  given = files();
  given.tokenizer_config = R"({"chat_template": [{"name": "x"}]})";
  CHECK(load_model_text(given, {}).error().code == ErrorCode::kCorrupt);
  given.tokenizer_config = R"({"chat_template": "{% if %}"})";
  CHECK(load_model_text(given, {}).error().code == ErrorCode::kCorrupt);
}
