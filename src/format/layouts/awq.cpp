#include "format/layouts/awq.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "format/layouts/integer_module.h"

namespace tandem::format {
namespace {

constexpr int kBits = 4;
constexpr int64_t kPerWord = 8;
/// Where in a word output 0, 1, … of its eight lies, in codes.
constexpr std::array<unsigned, kPerWord> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t word_at(const std::byte* words, int64_t at) {
  uint32_t word = 0;
  std::memcpy(&word, words + 4 * at, sizeof(word));
  return word;
}

/// Swaps parts of `b` with those of `a` that lie `shift` bits higher.
void swap_parts(uint32_t& a, uint32_t& b, unsigned shift, uint32_t mask) {
  const uint32_t both = ((a >> shift) ^ b) & mask;
  b ^= both;
  a ^= both << shift;
}

/// Code j of word i becomes code i of word j.
void transpose_codes(std::array<uint32_t, kPerWord>& w) {
  for (const size_t i : {0U, 1U, 2U, 3U}) swap_parts(w[i], w[i + 4], 16, 0x0000ffffU);
  for (const size_t i : {0U, 1U, 4U, 5U}) swap_parts(w[i], w[i + 2], 8, 0x00ff00ffU);
  for (const size_t i : {0U, 2U, 4U, 6U}) swap_parts(w[i], w[i + 1], 4, 0x0f0f0f0fU);
}

/// Outputs of a block of inputs [inputs, width words] as rows of words of eight inputs.
void turn_words(
    const std::byte* from, int64_t inputs, int64_t width, RowRange outputs, std::byte* to) {
  constexpr int64_t kBlock = 16;  // of words: a cache line
  const int64_t last = (outputs.end + kPerWord - 1) / kPerWord, row_words = inputs / kPerWord;
  for (int64_t begin = outputs.begin / kPerWord; begin < last; begin += kBlock)
    for (int64_t i = 0; i < row_words; ++i)
      for (int64_t c = begin; c < std::min(begin + kBlock, last); ++c) {
        std::array<uint32_t, kPerWord> words{};
        for (int64_t k = 0; k < kPerWord; ++k)
          words[static_cast<size_t>(k)] = word_at(from, (i * kPerWord + k) * width + c);
        transpose_codes(words);
        for (int64_t j = 0; j < kPerWord; ++j) {
          const int64_t output = c * kPerWord + j;
          if (output < outputs.begin || output >= outputs.end) continue;
          const uint32_t& word = words[kPlaces[static_cast<size_t>(j)]];
          std::memcpy(to + 4 * ((output - outputs.begin) * row_words + i), &word, sizeof(word));
        }
      }
}

Result<Tensor> awq_codes(const Checkpoint& from, const std::string& name, RowRange rows) {
  const auto words = from.tensor(name);
  if (!words) return words;
  const int64_t inputs = words->shape[0], width = words->shape[1];
  NewTensor out(Dtype::kU32, {rows.end - rows.begin, inputs / kPerWord});
  over_threads(static_cast<size_t>(rows.end - rows.begin), out.bytes.size(),
               [&](size_t begin, size_t end) {
                 const RowRange part{rows.begin + static_cast<int64_t>(begin),
                                     rows.begin + static_cast<int64_t>(end)};
                 turn_words(words->bytes.data(), inputs, width, part,
                            out.bytes.data() + begin * static_cast<size_t>(inputs) / 2);
               });
  return out.tensor;
}

Result<std::vector<int>> awq_zeros(const Checkpoint& from, const std::string& name, RowRange rows) {
  const auto words = from.tensor(name);
  if (!words) return words.error();
  const int64_t groups = words->shape[0], width = words->shape[1];
  std::vector<int> out;
  out.reserve(static_cast<size_t>((rows.end - rows.begin) * groups));
  for (int64_t o = rows.begin; o < rows.end; ++o)
    for (int64_t g = 0; g < groups; ++g) {
      const uint32_t word = word_at(words->bytes.data(), g * width + o / kPerWord);
      const unsigned place = kPlaces[static_cast<size_t>(o % kPerWord)];
      out.push_back(static_cast<int>(word >> (kBits * place) & 15U));
    }
  return out;
}

Status add_awq_module(const Checkpoint& from, const std::string& name, Derivations& derivations) {
  const std::string qweight = name + ".qweight", qzeros = name + ".qzeros";
  const std::string scale = name + ".scales";
  const auto words = from.describe(qweight);
  if (!words) return words.error();
  const auto scales = from.describe(scale);
  if (!scales) return scales.error();
  const bool are_matrices = words->shape.size() == 2 && scales->shape.size() == 2;
  const int64_t inputs = are_matrices ? words->shape[0] : 0;
  const int64_t outputs = are_matrices ? scales->shape[1] : 0;
  const int64_t groups = are_matrices ? scales->shape[0] : 0;
  if (Status fits = check_is(from, qweight, Dtype::kI32, {inputs, outputs / kPerWord}); !fits)
    return fits;
  if (outputs % kPerWord != 0 || inputs % 32 != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} inputs and {} outputs do not fill words of {}: fetch the "
                             "checkpoint again",
                             qweight, inputs, outputs, kPerWord)};
  IntegerModule module{.name = name,
                       .outputs = outputs,
                       .inputs = inputs,
                       .groups = groups,
                       .bits = kBits,
                       .scale_type = scales->dtype};
  module.codes = [&from, qweight](RowRange rows) { return awq_codes(from, qweight, rows); };
  module.scales = [&from, scale](RowRange rows) { return turned(from, scale, rows); };
  if (from.has(qzeros)) {
    if (Status fits = check_is(from, qzeros, Dtype::kI32, {groups, outputs / kPerWord}); !fits)
      return fits;
    module.zeros = [&from, qzeros](RowRange rows) { return awq_zeros(from, qzeros, rows); };
    derivations.hidden.insert(qzeros);
  }
  derivations.hidden.insert(qweight);
  return add_integers(from, std::move(module), derivations);
}

}  // namespace

Status add_awq(const Checkpoint& from, const nlohmann::json& method, Derivations& derivations) {
  constexpr std::string_view kQweight = ".qweight";
  const auto version = method.find("version");
  if (version != method.end() && *version != "gemm" && *version != "GEMM")
    return Error{ErrorCode::kUnsupported,
                 fmt::format("config: quantization_config.version {} of AWQ is not read; \"gemm\" "
                             "is: convert the unquantized model with mlx_lm.convert",
                             version->dump())};
  const auto bits = method.find("bits");
  if (bits != method.end() && *bits != kBits)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("config: quantization_config.bits {} of AWQ is not read; 4 is: convert "
                    "the unquantized model with mlx_lm.convert",
                    bits->dump())};
  for (const std::string& name : from.names()) {
    if (!name.ends_with(kQweight)) continue;
    const std::string module = name.substr(0, name.size() - kQweight.size());
    if (Status added = add_awq_module(from, module, derivations); !added) return added;
  }
  return {};
}

}  // namespace tandem::format
