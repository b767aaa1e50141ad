// Compiling in bounded time, and what masks allow.
#include "grammar/compiler.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grammar/hostile_test.h"
#include "grammar/source_limits.h"
#include "text/testdata/fixtures.h"

namespace tandem::grammar {
namespace {

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

/// What the process has worked since: of what waits or is run beside it nothing shows.
double cpu_seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Not what is tested: bounds must refuse what is costly, and not the clock.
CompilerOptions patient() { return {.time = std::chrono::seconds(60)}; }

TEST_CASE("grammar compiler: what is wrong, not offered or too costly is refused by its bounds") {
  Compiler compiler(fixture, patient());
  REQUIRE(compiler.check({.source = "{}"}));
  for (const gen::Grammar& grammar : hostile()) {
    CAPTURE(grammar.source.substr(0, 80));
    const auto start = std::clock();
    const Status checked = compiler.check(grammar);
    CHECK(cpu_seconds_since(start) < 0.8);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kInvalid);
    CHECK(checked.error().field == "grammar");
    CHECK(checked.error().message.size() > 10);
    CHECK(checked.error().message.size() < 400);
    CHECK(checked.error().message.find("NoExtension") == std::string::npos);
    CHECK(checked.error().message.find("to prepare") == std::string::npos);
  }
  CHECK(compiler.check({.kind = Kind::kRegex, .source = "ab+"}));
}

TEST_CASE("grammar compiler: eight hostile ones at once are each refused") {
  auto options = patient();
  options.most_running = 2;
  Compiler compiler(fixture, options);
  REQUIRE(compiler.check({.source = "{}"}));
  const std::vector<gen::Grammar> all = hostile();
  for (size_t first = 0; first < all.size(); first += 8) {
    const auto start = std::clock();
    std::vector<std::future<Status>> checks;
    for (size_t i = first; i < std::min(first + 8, all.size()); ++i) {
      checks.push_back(std::async(std::launch::async, [&, i] { return compiler.check(all[i]); }));
    }
    for (auto& check : checks) CHECK_FALSE(check.get());
    CHECK(cpu_seconds_since(start) < 1.6);  // of two threads
  }
}

TEST_CASE("grammar compiler: the grammars of one request share its time") {
  bool is_held = false;
  auto options = patient();
  options.start = [&](std::function<void()> task) {
    if (!is_held) start_thread(std::move(task));
  };
  Compiler compiler(fixture, options);
  REQUIRE(compiler.check({.source = "{}"}));
  auto left = compiler.time();
  CHECK(left == std::chrono::seconds(60));
  REQUIRE(compiler.check({.kind = Kind::kRegex, .source = "ab+c"}, left));
  CHECK(left < compiler.time());
  const auto before = left;
  REQUIRE(compiler.check({.kind = Kind::kRegex, .source = "ab+c"}, left));  // kept, costs nothing
  CHECK(left == before);
  // Waits for nothing but what is left.
  is_held = true;
  left = std::chrono::milliseconds(1);
  const Status checked = compiler.check({.kind = Kind::kRegex, .source = "ab+d"}, left);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kBusy);
  CHECK(left == std::chrono::milliseconds(0));
}

TEST_CASE("grammar compiler: what is over a bound says which, what came, and what to do") {
  Compiler compiler(fixture, {.time = std::chrono::seconds(20)});  // not what is tested here
  struct Case {
    gen::Grammar grammar;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {json(object_of(2000, false)), {"2000", "400", "not required", "smaller"}},
      {json(object_of(5000, true)), {"5000 properties", "4000"}},
      {json({{"anyOf", objects(3000)}}), {"3000 alternatives", "1000"}},
      {json({{"type", "integer"}, {"multipleOf", -3}}), {"multipleOf", "above 0", "-3"}},
      {json({{"multipleOf", "x"}}), {"multipleOf", "number above 0"}},
      {json({{"type", "integer"}, {"multipleOf", 107972737}}), {"multipleOf", "100000"}},
      {json({{"$ref", "#"}}), {"$ref", "leads back to itself"}},
      {json({{"type", "array"}, {"uniqueItems", true}}), {"uniqueItems", "leave it out"}},
      {json({{"type", "array"}, {"items", {{"not", Json::object()}}}}), {"not", "leave it out"}},
      {json({{"type", "array"}, {"minItems", 1e9}}), {"minItems", "whole number", "1000000000.0"}},
      {json({{"type", "array"}, {"maxItems", "too many items"}}),
       {"whole number", "maxItems", "too many"}},
      {json({{"type", "string"}, {"maxLength", 1e12}}), {"maxLength", "2147483647"}},
      {json({{"type", "object"}, {"minProperties", -1}}), {"minProperties", "whole number", "-1"}},
      {json({{"type", "array"}, {"items", 5}}), {"\"items\"", "must be a schema", "got 5"}},
      {json({{"properties", {{"foo", "bar"}}}}), {"\"foo\"", "must be a schema", "\"bar\""}},
      {json({{"additionalProperties", "no"}}), {"\"additionalProperties\"", "boolean", "no"}},
      {json({{"type", "string"}, {"pattern", "a(b"}}), {"pattern", "unclosed group"}},
      {json({{"anyOf", alike_objects(40, 100)}}), {"4000 properties", "one place", "3000"}},
      {json({{"minItems", 5}, {"maxItems", 2}, {"type", "array"}}), {"nothing fits", "minItems"}},
      {json({{"oneOf", {{{"type", "string"}}, {{"minLength", 1}}}}}), {"oneOf", "anyOf"}},
      {json(Json::array()), {"JSON object", "array"}},
      {{.source = "{"}, {"JSON object", "no JSON"}},
      {{.kind = Kind::kRegex, .source = "[^\\x00-\\U0010ffff]"}, {"no text fits"}},
      {{.kind = Kind::kLark, .source = "start: start \"x\" | start\n"}, {"of itself alone"}},
      {{.kind = Kind::kLark, .source = "start: start \"x\"\n"}, {"no text fits"}},
      {{.kind = Kind::kLark, .source = "start: a*\na: \"x\"*\n"}, {"empty", "repeated"}},
      {{.kind = Kind::kLark, .source = alternatives(2000)}, {"1501 alternatives", "1500"}},
      {{.kind = Kind::kLark, .source = terminals(7)}, {"terminal", "100000", "rules"}},
      {json({{"allOf", {{{"anyOf", alike_objects(40, 70)}}, {{"anyOf", alike_objects(3, 60)}}}}}),
       {"more ways open", "fewer"}}};
  for (const Case& at : cases) {
    CAPTURE(at.grammar.source.substr(0, 80));
    const Status checked = compiler.check(at.grammar);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kInvalid);
    for (const std::string& word : at.words) {
      CHECK_MESSAGE(checked.error().message.find(word) != std::string::npos,
                    checked.error().message << " lacks " << word);
    }
  }
}

/// Takes that many tokens that the masks allow, by chance, unless the answer is complete before.
void take_any(gen::Constraint& constraint, int tokens, std::mt19937& random) {
  const auto words = fixture();
  for (int token = 0; token < tokens; ++token) {
    const auto mask = constraint.allowed();
    REQUIRE_MESSAGE(mask.has_value(), (mask ? "" : mask.error().message));
    std::vector<gen::TokenId> ids;
    for (gen::TokenId id = 0; id < static_cast<int>(kLogits); ++id) {
      if (allows(*mask, id) && id != words->eos[0]) ids.push_back(id);
    }
    if (ids.empty()) return;
    const Status taken = constraint.take({&ids[random() % ids.size()], 1});
    REQUIRE_MESSAGE(taken.has_value(), (taken ? "" : taken.error().message));
  }
}

TEST_CASE("grammar compiler: what is within the bounds is followed to its end") {
  Compiler compiler(fixture, patient());
  const gen::Grammar cases[] = {json(object_of(400, false)),
                                json(object_of(4000, true)),
                                json({{"anyOf", objects(1000)}}),
                                json({{"anyOf", alike_objects(5, 100)}}),
                                json({{"anyOf", alike_objects(30, 100)}}),
                                json({{"anyOf", optional_objects(250)}}),
                                json({{"anyOf", vague_objects(500)}}),
                                json({{"anyOf", vague_objects(1000)}}),
                                json(multiples(99'991, -1e18, 1e18)),
                                json(multiples(86'400, 0, 1e9)),
                                json(chain(1000)),
                                {.kind = Kind::kLark, .source = "start: a\na: /[a-z]/ a | \"!\"\n"},
                                {.kind = Kind::kLark, .source = alternatives(1400)}};
  std::mt19937 random(3);
  for (const gen::Grammar& grammar : cases) {
    CAPTURE(grammar.source.substr(0, 80));
    const Status checked = compiler.check(grammar);
    REQUIRE_MESSAGE(checked.has_value(), (checked ? "" : checked.error().message));
    for (int answer = 0; answer < 5; ++answer) {
      auto made = make(compiler, grammar);
      REQUIRE(made);
      take_any(**made, 200, random);
    }
  }
}

TEST_CASE(
    "grammar compiler: multiples that schemas really have, and boolean definitions, are taken") {
  for (const Json& schema : {Json{{"type", "number"}, {"multipleOf", 0.01}},
                             Json{{"type", "integer"}, {"multipleOf", 86400}},
                             Json::parse(R"({"properties": {"a": {"multipleOf": 0.5},
                                                            "b": {"multipleOf": 1000},
                                                            "c": {"multipleOf": 1e-05}}})"),
                             Json::parse(R"({"properties": {"a": {"$ref": "#/$defs/any"}},
                                             "$defs": {"any": true}})")}) {
    CAPTURE(schema.dump());
    const Status fits = check_source(json(schema));
    CHECK_MESSAGE(fits, (fits ? "" : fits.error().message));
  }
}

TEST_CASE("grammar compiler: a grammar that comes again is not compiled again, and starts anew") {
  int threads = 0;
  std::atomic<int> ended = 0;
  CompilerOptions options;
  options.start = [&](std::function<void()> task) {
    ++threads;
    start_thread([&ended, task = std::move(task)] {
      task();
      ++ended;
    });
  };
  // One that is about to end might take what comes next.
  const auto threads_so_far = [&] {
    while (ended < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return threads;
  };
  Compiler compiler(fixture, options);
  const gen::Grammar grammar{.kind = Kind::kRegex, .source = "ab+"};
  REQUIRE(compiler.check(grammar));
  const int first = threads_so_far();
  for (int i = 0; i < 5; ++i) REQUIRE(compiler.check(grammar));
  CHECK(threads_so_far() == first);
  const gen::TokenId a = *fixture()->tokenizer->id("a");
  for (int i = 0; i < 3; ++i) {
    const auto made = make(compiler, grammar);
    REQUIRE(made);
    CHECK(allows(*(*made)->allowed(), a));
    REQUIRE((*made)->take({&a, 1}));
    CHECK_FALSE(allows(*(*made)->allowed(), a));
  }
  // Of another kind the same source is another grammar; one is forgotten when many others came.
  CHECK_FALSE(compiler.check({.kind = Kind::kJsonSchema, .source = "ab+"}));
  for (int i = 0; i < 20; ++i) {
    REQUIRE(compiler.check({.kind = Kind::kRegex, .source = "x" + std::to_string(i)}));
  }
  const int before = threads_so_far();
  REQUIRE(compiler.check(grammar));
  CHECK(threads_so_far() > before);
}

TEST_CASE("grammar compiler: while none gets its turn grammars are busy, and later others go on") {
  std::vector<std::function<void()>> held;
  const auto run_held = [&] {
    for (const auto& work : std::exchange(held, {})) work();
  };
  CompilerOptions options{.time = std::chrono::milliseconds(0), .most_running = 1};
  options.start = [&](std::function<void()> work) { held.push_back(std::move(work)); };
  Compiler compiler(fixture, options);
  int made = 0;
  const auto count = [&](const auto& constraint) { made += constraint.has_value() ? 1 : 0; };
  compiler.make({.kind = Kind::kRegex, .source = "a"}, count);
  run_held();
  CHECK(made == 1);
  for (int i = 0; i < 20; ++i) {
    const Status checked =
        compiler.check({.kind = Kind::kRegex, .source = "b" + std::to_string(i)});
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kBusy);
  }
  CHECK(held.size() == 1);
  run_held();
  compiler.make({.kind = Kind::kRegex, .source = "ab"}, count);
  run_held();
  CHECK(made == 2);
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
