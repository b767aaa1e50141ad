// Compiling in bounded time, and what masks allow.
#include "grammar/compiler.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "grammar/source_limits.h"
#include "text/testdata/fixtures.h"

namespace tandem::grammar {
namespace {

using Json = nlohmann::ordered_json;
using Kind = gen::GrammarKind;
using std::chrono::steady_clock;

constexpr uint32_t kLogits = 330;  // more than the vocabulary, as models have

Result<Vocabulary> fixture() {
  auto tokenizer = std::make_shared<const text::Tokenizer>(text::byte_level_fixture());
  const text::TokenId end = *tokenizer->id("<|im_end|>");
  return Vocabulary{.tokenizer = std::move(tokenizer), .eos = {end}, .logits = kLogits};
}

Result<std::unique_ptr<gen::Constraint>> make(Compiler& compiler, const gen::Grammar& grammar) {
  std::promise<Result<std::unique_ptr<gen::Constraint>>> promise;
  compiler.make(grammar, [&](auto made) { promise.set_value(std::move(made)); });
  return promise.get_future().get();
}

bool allows(const gen::TokenMask& mask, text::TokenId id) {
  const auto at = static_cast<size_t>(id);
  return (mask[at / 32] >> (at % 32) & 1U) != 0;
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::string nested(size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

/// Sources that are wrong, not offered, or made to cost.
std::vector<gen::Grammar> hostile() {
  Json intersected = {{"allOf", Json::array()}};
  Json patterned = {{"type", "object"}};
  for (int i = 0; i < 40; ++i) {
    const std::string pattern = "^.*" + std::to_string(i) + ".*$";
    intersected["allOf"].push_back({{"type", "string"}, {"pattern", pattern}});
  }
  for (int i = 0; i < 5000; ++i) {
    patterned["properties"]["p" + std::to_string(i)] = {
        {"type", "string"}, {"pattern", "^[a-z]{3,9}" + std::to_string(i) + "$"}};
  }
  const auto schema = [](const std::string& source) {
    return gen::Grammar{.kind = Kind::kJsonSchema, .source = source};
  };
  return {
      schema(R"({"type": "string", "pattern": "^+[a-z]$"})"),
      schema(R"({"type": "string", "pattern": "(?<=x)y"})"),
      schema(R"({"type": "string", "pattern": ")" + std::string(5000, '(') +
             std::string(5000, ')') + R"("})"),
      schema(R"({"$ref": "#"})"),
      schema(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"),
      schema(R"({"properties": {"foo": "bar"}})"),
      schema(R"({"not": {"type": "string"}})"),
      schema(R"({"type": "nonsense"})"),
      schema("{"),
      schema("[]"),
      schema(nested(3000, R"({"items":)", "}")),
      schema(nested(3000, "[", "]")),
      schema(intersected.dump()),
      schema(patterned.dump()),
      schema(R"({"type": "string", "pattern": "(a{1000}){1000}"})"),
      {.kind = Kind::kRegex, .source = "("},
      {.kind = Kind::kRegex, .source = "((a{900}){900}){900}"},
      {.kind = Kind::kRegex, .source = std::string(5000, '(') + std::string(5000, ')')},
      {.kind = Kind::kRegex, .source = std::string(2 << 20, 'a')},
      {.kind = Kind::kLark, .source = "start: missing"},
      {.kind = Kind::kLark, .source = "start: " + nested(60'000, "(", ")")},
      {.kind = Kind::kLark, .source = "root ::= \"a\""},
      {.kind = Kind::kLark, .source = "start: /((x{900}){900}){9}/"},
      {.kind = Kind::kLark, .source = "start: %json " + intersected.dump()},
  };
}

TEST_CASE("grammar compiler: whatever is wrong, not offered or costs too much is refused in time") {
  Compiler compiler(fixture);
  REQUIRE(compiler.check({.source = "{}"}));
  for (const gen::Grammar& grammar : hostile()) {
    CAPTURE(grammar.source.substr(0, 80));
    const auto start = steady_clock::now();
    const Status checked = compiler.check(grammar);
    CHECK(seconds_since(start) < 1);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kInvalid);
    CHECK(checked.error().field == "grammar");
    CHECK(checked.error().message.size() > 10);
    CHECK(checked.error().message.size() < 2000);
  }
  CHECK(compiler.check({.kind = Kind::kRegex, .source = "ab+"}));
}

TEST_CASE("grammar compiler: of grammars that never end preparing few run, and others go on") {
  // The vocabulary takes its time once; a compile of it that is endless is stood in for by a time
  // of zero, in which nothing can be prepared.
  Compiler compiler(fixture, {.time = std::chrono::milliseconds(0), .most_running = 1});
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const Status checked = compiler.check({.kind = Kind::kRegex, .source = "a{1,500}b"});
    if (checked) continue;  // it was quick
    ++refused;
    const ErrorCode code = checked.error().code;
    const bool is_one = code == ErrorCode::kInvalid || code == ErrorCode::kBusy;
    CHECK(is_one);
  }
  CHECK(refused > 0);
  CHECK(make(compiler, {.kind = Kind::kRegex, .source = "ab"}));
}

TEST_CASE("grammar compiler: a vocabulary that cannot be had is every grammar's error") {
  Compiler compiler(
      []() -> Result<Vocabulary> { return Error{ErrorCode::kNotFound, "no tokenizer here"}; });
  CHECK(compiler.check({.source = "{}"}).error().code == ErrorCode::kNotFound);
  CHECK(make(compiler, {.source = "{}"}).error().code == ErrorCode::kNotFound);
}

TEST_CASE("grammar compiler: many at once are all made") {
  Compiler compiler(fixture, {.most_running = 2});
  std::vector<std::promise<bool>> made(40);
  for (auto& each : made) {
    compiler.make({.kind = Kind::kRegex, .source = "(ab|cd){3}"},
                  [&each](auto constraint) { each.set_value(constraint.has_value()); });
  }
  for (auto& each : made) CHECK(each.get_future().get());
}

TEST_CASE("grammar compiler: a vocabulary whose loading throws is every grammar's error") {
  Compiler compiler([]() -> Result<Vocabulary> { throw std::runtime_error("no memory here"); });
  for (int i = 0; i < 2; ++i) {
    const Status checked = compiler.check({.source = "{}"});
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kInternal);
    CHECK(checked.error().message.find("no memory here") != std::string::npos);
    CHECK(make(compiler, {.source = "{}"}).error().code == ErrorCode::kInternal);
  }
}

TEST_CASE("grammar compiler: threads that cannot be had are an error, and later ones are taken") {
  bool has_threads = false;
  CompilerOptions options{.most_running = 1};
  options.start = [&](std::function<void()> task) {
    if (!has_threads) throw std::runtime_error("too many threads");
    start_thread(std::move(task));
  };
  Compiler compiler(fixture, options);
  compiler.prepare();
  for (int i = 0; i < 3; ++i) {
    CHECK(compiler.check({.source = "{}"}).error().code == ErrorCode::kBusy);
    const auto made = make(compiler, {.source = "{}"});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kBusy);
    CHECK(made.error().message.find("too many threads") != std::string::npos);
  }
  has_threads = true;
  CHECK(make(compiler, {.source = "{}"}));
  CHECK(compiler.check({.source = "{}"}));
}

TEST_CASE("grammar compiler: what is asked for while no further thread can be had is not lost") {
  int threads = 0;
  CompilerOptions options{.most_running = 3};
  options.start = [&](std::function<void()> task) {
    if (++threads > 1) throw std::runtime_error("too many threads");
    start_thread(std::move(task));
  };
  std::promise<void> go_on;
  Compiler compiler(
      [waits = go_on.get_future().share()] {
        waits.wait();
        return fixture();
      },
      options);
  std::vector<std::promise<bool>> made(8);
  for (auto& each : made) {
    compiler.make({.kind = Kind::kRegex, .source = "ab"},
                  [&each](auto constraint) { each.set_value(constraint.has_value()); });
  }
  CHECK(threads == 8);
  go_on.set_value();
  for (auto& each : made) CHECK(each.get_future().get());
}

TEST_CASE("matcher: it allows what goes on, takes only that, and ends with the end") {
  Compiler compiler(fixture);
  const auto words = fixture();
  const text::Tokenizer& tokenizer = *words->tokenizer;
  auto made = make(compiler, {.kind = Kind::kRegex, .source = "ab?"});
  REQUIRE(made);
  gen::Constraint& constraint = **made;
  const gen::TokenId a = *tokenizer.id("a");
  const gen::TokenId b = *tokenizer.id("b");
  const gen::TokenId end = words->eos[0];
  const auto first = constraint.allowed();
  REQUIRE(first);
  CHECK(first->size() == (kLogits + 31) / 32);
  CHECK(allows(*first, a));
  CHECK_FALSE(allows(*first, b));
  CHECK_FALSE(allows(*first, end));
  REQUIRE(constraint.take(std::vector{a}));
  CHECK(allows(*constraint.allowed(), b));
  CHECK(allows(*constraint.allowed(), end));
  REQUIRE(constraint.take(std::vector{b}));
  const auto last = constraint.allowed();
  for (text::TokenId id = 0; id < tokenizer.size(); ++id) CHECK(allows(*last, id) == (id == end));
  CHECK(constraint.take(std::vector{a}).error().code == ErrorCode::kInvalid);
  CHECK_FALSE(constraint.allowed());
}

TEST_CASE("source limits: what people write is not refused") {
  for (const gen::Grammar& grammar : std::vector<gen::Grammar>{
           {.source = R"({"type": "object", "properties": {"a": {"type": "string",
             "pattern": "^[0-9]{4}-[0-9]{2}(-[0-9]{2}){0,3}$", "maxLength": 20000}}})"},
           {.kind = Kind::kRegex, .source = R"((?:a|b)?(?i:x)[(+*^|]+\$?\(*c*$|^[+]?d)"},
           {.kind = Kind::kRegex, .source = R"([a-z]{1,64}\{[0-9]{1,4}\}(\.[a-z]{2,10}){1,20})"},
           {.kind = Kind::kLark, .source = "start: \"(((\" %json {\"enum\": [\":(\", \")\"]}"}}) {
    CAPTURE(grammar.source);
    const Status fits = check_source(grammar);
    CHECK_MESSAGE(fits.has_value(), (fits ? "" : fits.error().message));
  }
  Json faces = {{"enum", Json::array()}};
  for (int i = 0; i < 500; ++i) faces["enum"].push_back(":( " + std::to_string(i));
  CHECK(check_source({.source = faces.dump()}));
}

}  // namespace
}  // namespace tandem::grammar
