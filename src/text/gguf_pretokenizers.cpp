#include "text/gguf_pretokenizers.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace tandem::text {
namespace {

using nlohmann::json;

constexpr std::string_view kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr std::string_view kSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kHeadOfWord = R"([^\r\n\p{L}\p{N}]?)";
constexpr std::string_view kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
constexpr std::string_view kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";

/// Contractions, words, up to `digits` digits, signs, spaces.
std::string word_regex(std::string_view digits) {
  return fmt::format(R"({}|{}\p{{L}}+|{}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{})", kContractions,
                     kHeadOfWord, digits, kSpaces);
}

/// Words also end where lower case turns to upper case; `tail` may follow a word.
std::string cased_regex(std::string_view digits, std::string_view tail) {
  return fmt::format(R"({0}{1}*{2}+{3}|{0}{1}+{2}*{3}|{4}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{5})",
                     kHeadOfWord, kUpper, kLower, tail, digits, kSpaces);
}

json split(const std::string& regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", false},
          {"use_regex", use_regex}};
}

json sequence(json parts) { return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}}; }

json by_regex(const std::string& regex) {
  return sequence(json::array({split(regex), byte_level(false)}));
}

json digits_apart() {
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  return sequence(json::array({digits, byte_level(true)}));
}

json deepseek_v3() {
  // The model's own file has the line ends themselves in its pattern; the fast path looks for that.
  const std::string words = fmt::format(
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{{|}}~][A-Za-z]+|[^{0}\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+)"
      R"(| ?[\p{{P}}\p{{S}}]+[{0}]*|\s*[{0}]+|\s+(?!\S)|\s+)",
      "\r\n");
  return sequence(json::array({split(R"(\p{N}{1,3})"), split("[一-龥぀-ゟ゠-ヿ]+"),
                               split(words), byte_level(false)}));
}

struct Rule {
  std::string_view name;
  Pretokenization (*make)();
};

Pretokenization gpt2() { return {.normalizer = {}, .pre_tokenizer = byte_level(true)}; }

Pretokenization digits() { return {.normalizer = {}, .pre_tokenizer = digits_apart()}; }

Pretokenization llama3() {
  return {.normalizer = {},
          .pre_tokenizer = by_regex(word_regex(R"(\p{N}{1,3})")),
          .ignore_merges = true};
}

Pretokenization qwen2() {
  return {.normalizer = {{"type", "NFC"}}, .pre_tokenizer = by_regex(word_regex(R"(\p{N})"))};
}

Pretokenization r1_qwen() {
  return {.normalizer = {}, .pre_tokenizer = by_regex(word_regex(R"(\p{N})"))};
}

Pretokenization tekken() {
  return {.normalizer = {},
          .pre_tokenizer = by_regex(cased_regex(R"(\p{N})", "")),
          .ignore_merges = true};
}

Pretokenization o200k() {
  const std::string tail = std::string(kContractions) + "?";
  return {.normalizer = {}, .pre_tokenizer = by_regex(cased_regex(R"(\p{N}{1,3})", tail))};
}

/// As llama3's, but that merges decide alone.
Pretokenization dbrx() {
  return {.normalizer = {}, .pre_tokenizer = by_regex(word_regex(R"(\p{N}{1,3})"))};
}

/// As qwen2's, but that marks belong to the letters before them.
Pretokenization qwen35() {
  const std::string words =
      fmt::format(R"({}|{}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{})",
                  kContractions, kHeadOfWord, kSpaces);
  return {.normalizer = {{"type", "NFC"}}, .pre_tokenizer = by_regex(words)};
}

/// Signs do not take line ends.
Pretokenization seed_coder() {
  const std::string words = fmt::format(R"({}|{}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+{})",
                                        kContractions, kHeadOfWord, kSpaces);
  return {.normalizer = {}, .pre_tokenizer = by_regex(words)};
}

/// As o200k's, with Chinese characters apart from other letters.
Pretokenization kimi_k2() {
  constexpr std::string_view kUpperButHan = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])";
  constexpr std::string_view kLowerButHan = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])";
  const std::string words = fmt::format(
      R"(\p{{Han}}+|{0}{1}*{2}+{3}?|{0}{1}+{2}*{3}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{4})",
      kHeadOfWord, kUpperButHan, kLowerButHan, kContractions, kSpaces);
  return {.normalizer = {}, .pre_tokenizer = by_regex(words)};
}

Pretokenization deepseek3() { return {.normalizer = {}, .pre_tokenizer = deepseek_v3()}; }

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {{"default", gpt2},
                                           {"gpt-2", gpt2},
                                           {"llama-bpe", llama3},
                                           {"llama3", llama3},
                                           {"llama-v3", llama3},
                                           {"qwen2", qwen2},
                                           {"smollm", digits},
                                           {"starcoder", digits},
                                           {"refact", digits},
                                           {"deepseek-v3", deepseek3},
                                           {"deepseek-r1-qwen", r1_qwen},
                                           {"tekken", tekken},
                                           {"gpt-4o", o200k},
                                           {"minimax-m2", o200k},
                                           {"kimi-k2", kimi_k2},
                                           {"glm4", llama3},
                                           {"lfm2", llama3},
                                           {"pixtral", llama3},
                                           {"chatglm-bpe", dbrx},
                                           {"dbrx", dbrx},
                                           {"seed-coder", seed_coder},
                                           {"qwen35", qwen35}};
  return kRules;
}

}  // namespace

Result<Pretokenization> pretokenization(const std::string& name) {
  std::string known;
  for (const Rule& rule : rules()) {
    if (rule.name == name) return rule.make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", rule.name);
  }
  return Error{.code = ErrorCode::kUnsupported,
               .message = fmt::format("tokenizer.ggml.pre \"{}\" is not supported (known: {}); a "
                                      "folder with the model's own tokenizer.json works",
                                      name, known)};
}

}  // namespace tandem::text
