// Bodies of POST /v1/embeddings, both ways.
#include <doctest/doctest.h>

#include <cstring>

#include "protocol/errors.h"
#include "protocol/json.h"
#include "protocol/openai/embeddings_encoder.h"
#include "protocol/openai/embeddings_request.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol::openai {
namespace {

Result<EmbeddingsRequest> parse_inputs(const std::string& fields, bool strict = false) {
  Options rules;
  rules.strict_fields = strict;
  return parse_embeddings("{" + fields + "}", {.model = kTinyModel, .options = rules});
}

using Ids = std::vector<gen::TokenId>;

TEST_CASE("embeddings request: texts and ids, one or many") {
  const auto inputs = [](const std::string& value) {
    auto parsed = parse_inputs("\"input\":" + value);
    REQUIRE_MESSAGE(parsed.has_value(), (parsed ? "" : parsed.error().message));
    return parsed->request.inputs;
  };
  CHECK(std::get<std::string>(inputs(R"("hello")").at(0).prompt) == "hello");
  CHECK(std::get<std::string>(inputs(R"(["a","b"])").at(1).prompt) == "b");
  CHECK(std::get<Ids>(inputs("[1,2,3]").at(0).prompt) == Ids{1, 2, 3});
  const auto lists = inputs("[[1],[2,999]]");
  CHECK(lists.size() == 2);
  CHECK(std::get<Ids>(lists[1].prompt) == Ids{2, 999});
  CHECK(std::get<Ids>(inputs(R"(["a",[5]])").at(1).prompt) == Ids{5});
}

TEST_CASE("embeddings request: every field reaches the request, and defaults are the wire's") {
  const auto plain = parse_inputs(R"("input":"x")");
  REQUIRE(plain.has_value());
  CHECK(plain->model == "org/tiny");
  CHECK_FALSE(plain->is_base64);
  CHECK(plain->request.pooling == gen::Pooling::kMean);
  CHECK_FALSE(plain->request.dimensions);
  const auto full = parse_inputs(
      R"("input":"x","model":"default_model","encoding_format":"base64","dimensions":3,
         "pooling":"last","user":"me","priority":"low","timeout":2,"colour":1)");
  REQUIRE(full.has_value());
  CHECK(full->is_base64);
  CHECK(full->request.dimensions == 3U);
  CHECK(full->request.pooling == gen::Pooling::kLast);
  CHECK(full->request.priority == gen::Priority::kLow);
  CHECK(full->request.deadline == std::chrono::milliseconds(2000));
  CHECK(full->ignored == std::vector<std::string>{"colour"});
  CHECK_FALSE(parse_inputs(R"("input":"x","colour":1)", true).has_value());
  CHECK(parse_inputs(R"("input":"x","dimensions":null,"pooling":null,"encoding_format":null)"));
}

TEST_CASE("embeddings request: what is wrong is named with its place") {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("model":"org/tiny")", "input"},
      {R"("input":null)", "input"},
      {R"("input":5)", "input"},
      {R"("input":{})", "input"},
      {R"("input":"")", "input"},
      {R"("input":[])", "input"},
      {R"("input":["a",""])", "input[1]"},
      {R"("input":["a",7])", "input[1]"},
      {R"("input":[[1],[]])", "input[1]"},
      {R"("input":[[1],[1000]])", "input[1]"},
      {R"("input":[1,-1])", "input"},
      {R"("input":[1,"a"])", "input"},
      {R"("input":"x","pooling":"max")", "pooling"},
      {R"("input":"x","encoding_format":"int8")", "encoding_format"},
      {R"("input":"x","dimensions":0)", "dimensions"},
      {R"("input":"x","dimensions":1.5)", "dimensions"},
      {R"("input":"x","dimensions":true)", "dimensions"},
      {R"("input":"x","priority":"urgent")", "priority"}};
  for (const auto& [fields, field] : wrong) {
    CAPTURE(fields);
    const auto parsed = parse_inputs(fields);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().field == field);
    CHECK(status_of(parsed.error()) == 400);
  }
  const auto other = parse_inputs(R"("input":"x","model":"gpt")");
  REQUIRE_FALSE(other.has_value());
  CHECK(status_of(other.error()) == 404);
}

TEST_CASE("embeddings request: 2048 inputs are taken and one more is not") {
  std::string many = R"("input":["a")";
  for (size_t i = 1; i < kMostInputs; ++i) many += R"(,"a")";
  CHECK(parse_inputs(many + "]")->request.inputs.size() == kMostInputs);
  const auto refused = parse_inputs(many + R"(,"a"])");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "'input' must have at most 2048 inputs, not 2049");
}

/// The floats that a client makes of base64 text.
std::vector<float> from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255U);
  }
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

TEST_CASE("embeddings answer: numbers and base64 read back as the same floats, in order") {
  const chat::Vectors vectors = {{0.6F, -0.8F, 1e-30F}, {1.0F / 3, 0.0F, -1.0F}, {5e-8F}, {}};
  const Json plain = Json::parse(encode_embeddings(vectors, false, "a \"b\"", 12));
  const Json coded = Json::parse(encode_embeddings(vectors, true, "m", 12));
  CHECK(plain["object"] == "list");
  CHECK(plain["model"] == "a \"b\"");
  CHECK(plain["usage"] == Json{{"prompt_tokens", 12}, {"total_tokens", 12}});
  REQUIRE(plain["data"].size() == vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    CHECK(plain["data"][i]["object"] == "embedding");
    CHECK(plain["data"][i]["index"] == i);
    CHECK(plain["data"][i]["embedding"].get<std::vector<float>>() == vectors[i]);
    CHECK(from_base64(coded["data"][i]["embedding"]) == vectors[i]);
  }
}

}  // namespace
}  // namespace tandem::protocol::openai
