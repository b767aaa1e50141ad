#include "format/gguf.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/checkpoint.h"
#include "format/gguf_blocks.h"
#include "format/half.h"
#include "format/layouts/integer_module.h"
#include "format/layouts/scalars.h"
#include "format/testdata/gguf_writer.h"

namespace tandem::format {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::filesystem::path write_temp(const std::string& name, const std::string& bytes) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("tandem-{}-{}", ::getpid(), name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

GgufWriter tiny_llama() {
  GgufWriter writer;
  writer.text("general.architecture", "llama");
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, uint32_t>>{{"block_count", 1},
                                                               {"embedding_length", 32},
                                                               {"feed_forward_length", 64},
                                                               {"attention.head_count", 2},
                                                               {"attention.head_count_kv", 1},
                                                               {"context_length", 128}}) {
    writer.number(std::string("llama.") + key, value);
  }
  writer.texts("tokenizer.ggml.tokens", {"a", "b", ""});
  writer.number("tokenizer.ggml.eos_token_id", 2);
  return writer;
}

/// One Q4_1 block: scale, minimum, then codes 0 … 15, 15 … 0 for elements 0 … 31.
std::string q4_1_block(float scale, float minimum) {
  std::string block(20, '\0');
  const uint16_t d = to_half(scale);
  const uint16_t m = to_half(minimum);
  std::memcpy(block.data(), &d, 2);
  std::memcpy(block.data() + 2, &m, 2);
  for (int i = 0; i < 16; ++i)
    block[static_cast<size_t>(4 + i)] = static_cast<char>(i | ((15 - i) << 4));
  return block;
}

TEST_CASE("half: every half-precision number survives a round trip") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_half(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    CHECK(to_half(value) == bits);
  }
  CHECK(to_half(1.0F + 1.0F / 2048.0F) == to_half(1.0F));  // ties to even
  CHECK(to_half(65520.0F) == 0x7c00U);
  CHECK(to_half(0.0F) == 0);
}

TEST_CASE("gguf: metadata and tensor places are read back") {
  GgufWriter writer = tiny_llama();
  writer.tensor("token_embd.weight", GgmlType::kF32, {3, 32}, std::string(3 * 32 * 4, 'x'));
  const std::string file = writer.finish();
  const auto gguf = Gguf::parse(bytes_of(file), file.size());
  REQUIRE(gguf);
  CHECK(*gguf->text("general.architecture") == "llama");
  CHECK(gguf->number("llama.embedding_length") == 32);
  CHECK(gguf->texts("tokenizer.ggml.tokens")->at(1) == "b");
  CHECK(gguf->tensors().at("token_embd.weight").shape == std::vector<int64_t>{3, 32});
  CHECK(file.substr(gguf->tensors().at("token_embd.weight").offset, 4) == "xxxx");
}

TEST_CASE("gguf: a file cut anywhere is an error and never read past its end") {
  GgufWriter writer = tiny_llama();
  writer.tensor("token_embd.weight", GgmlType::kF32, {3, 32}, std::string(3 * 32 * 4, 'x'));
  const std::string file = writer.finish();
  for (size_t length = 0; length < file.size() - 3 * 32 * 4; ++length) {
    CAPTURE(length);
    const std::string cut = file.substr(0, length);
    CHECK_FALSE(Gguf::parse(bytes_of(cut), cut.size()));
  }
  const auto path = write_temp("cut.gguf", file.substr(0, file.size() - 1));
  const auto opened = open_checkpoint(path);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.find("truncated") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("gguf: blocks become codes, scales and biases of the same values") {
  const std::string block = q4_1_block(0.5F, -1.25F);
  const auto codes = block_codes(GgmlType::kQ4_1, bytes_of(block));
  REQUIRE(codes.size() == 16);
  for (size_t element = 0; element < 32; ++element) {
    const auto code =
        static_cast<int>((codes[element / 2] >> (element % 2 == 0 ? 0 : 4)) & std::byte{15});
    CHECK(code == (element < 16 ? static_cast<int>(element) : 31 - static_cast<int>(element)));
  }
  uint16_t bias = 0;
  std::memcpy(&bias, block_biases(GgmlType::kQ4_1, bytes_of(block)).data(), 2);
  CHECK(from_half(bias) == -1.25F);

  std::string q8(34, '\0');
  const uint16_t d = to_half(0.25F);
  std::memcpy(q8.data(), &d, 2);
  q8[2] = static_cast<char>(-128);
  q8[33] = 127;
  const auto wide = block_codes(GgmlType::kQ8_0, bytes_of(q8));
  CHECK(wide.front() == std::byte{0});
  CHECK(wide.back() == std::byte{255});
  std::memcpy(&bias, block_biases(GgmlType::kQ8_0, bytes_of(q8)).data(), 2);
  CHECK(from_half(bias) == -32.0F);
}

/// 256 numbers of a type: pseudo-random bytes but for the halves at `halves`, which are 1/16 and
/// 3/32. What they stand for is gguf-py's: all of it times 1, 2, 3 …, and a few of them.
struct KnownBlocks {
  GgmlType type;
  size_t bytes;  // of a block
  std::vector<size_t> halves;
  double sum;
  std::array<float, 5> some;  // of kSome
  float rounding = 0;         // the largest difference
};
constexpr std::array<size_t, 5> kSome = {0, 17, 77, 130, 255};

std::string bytes_of(const KnownBlocks& known) {
  const size_t size = known.bytes * 256 / static_cast<size_t>(block_elements(known.type));
  std::string out;
  uint32_t state = 1;
  for (size_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    out.push_back(static_cast<char>(state >> 24));
  }
  for (size_t at = 0; at < size; at += known.bytes)
    for (size_t i = 0; i < known.halves.size(); ++i) {
      const uint16_t half = to_half(i == 0 ? 0.0625F : 0.09375F);
      std::memcpy(out.data() + at + known.halves[i], &half, sizeof(half));
    }
  return out;
}

std::vector<float> numbers_of(GgmlType type, const std::string& blocks) {
  const auto codes = block_codes(type, bytes_of(blocks));
  const auto scales = block_scales(type, bytes_of(blocks));
  const auto biases = block_biases(type, bytes_of(blocks));
  std::vector<float> out;
  for (size_t i = 0; i < 256; ++i)
    out.push_back(static_cast<float>(code_at(codes.data(), *block_bits(type), i)) *
                      scalar_at(scales.data(), Dtype::kF16, i / 32) +
                  scalar_at(biases.data(), Dtype::kF16, i / 32));
  return out;
}

TEST_CASE("gguf: blocks of every type stand for what ggml's rules say") {
  for (const KnownBlocks& known : std::initializer_list<KnownBlocks>{
           {GgmlType::kQ4_0, 18, {0}, -815.125, {-0.4375F, 0.1875F, -0.25F, 0.125F, 0.0625F}},
           {GgmlType::kQ4_1, 20, {0, 2}, 18056, {0.84375F, 0.40625F, 0.78125F, 0.21875F, 0.15625F}},
           {GgmlType::kQ5_0, 22, {0}, -191.5625, {0.375F, -0.5F, 0.75F, -0.4375F, -0.6875F}},
           {GgmlType::kQ5_1,
            24,
            {0, 2},
            34127.5,
            {0.34375F, 1.71875F, 1.90625F, 1.78125F, 0.71875F}},
           {GgmlType::kQ8_0, 34, {0}, 1893.125, {-7.9375F, -7.5F, 0.8125F, -0.5625F, -3.875F}},
           {GgmlType::kQ4_K, 144, {0, 2}, 396880.0625, {8.625F, 7.875F, 3, 3.09375F, 21.28125F}},
           {GgmlType::kQ5_K, 176, {0, 2}, 893563.5, {4.875F, 22.125F, 5.25F, 3.53125F, 10.53125F}},
           {GgmlType::kQ6_K,
            210,
            {208},
            -366081.4375,
            {-71.75F, 125.875F, 115.1875F, -106.75F, 0},
            1.02F},
           {GgmlType::kIq4Nl, 18, {0}, -8589.375, {-6.5F, 2.375F, -3.0625F, 1.5625F, 0.8125F}},
           {GgmlType::kIq4Xs, 136, {0}, -105904.3125, {12.25F, -6.25F, -42.75F, -61.75F, 19}}}) {
    CAPTURE(static_cast<uint32_t>(known.type));
    const std::string blocks = bytes_of(known);
    CHECK(blocks.size() == stored_bytes(known.type, 256));
    const auto numbers = numbers_of(known.type, blocks);
    double sum = 0;
    for (size_t i = 0; i < 256; ++i)
      sum += static_cast<double>(numbers[i]) * static_cast<double>(i + 1);
    CHECK(std::fabs(sum - known.sum) <= 0.02 * known.rounding * std::fabs(known.sum) + 1e-3);
    for (size_t i = 0; i < kSome.size(); ++i)
      CHECK(std::fabs(numbers[kSome[i]] - known.some[i]) <= known.rounding);
  }
}

TEST_CASE("gguf: blocks of mxfp4 become codes and bytes of scales") {
  std::string block(17, '\0');
  block[0] = 120;
  for (int i = 0; i < 16; ++i)
    block[static_cast<size_t>(1 + i)] = static_cast<char>(i | ((15 - i) << 4));
  const std::string two = block + block;
  const auto codes = block_codes(GgmlType::kMxfp4, bytes_of(two));
  REQUIRE(codes.size() == 32);
  CHECK(codes[1] == std::byte{0x32});   // elements 2 and 3
  CHECK(codes[15] == std::byte{0x01});  // elements 30 and 31
  CHECK(block_scales(GgmlType::kMxfp4, bytes_of(two)) ==
        std::vector<std::byte>{std::byte{120}, std::byte{120}});
}

TEST_CASE("gguf checkpoint: gpt-oss has its own names, and experts in mxfp4") {
  GgufWriter writer;
  writer.text("general.architecture", "gpt-oss");
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, uint32_t>>{{"block_count", 1},
                                                               {"embedding_length", 32},
                                                               {"feed_forward_length", 64},
                                                               {"expert_feed_forward_length", 64},
                                                               {"expert_count", 2},
                                                               {"expert_used_count", 1},
                                                               {"attention.head_count", 2},
                                                               {"attention.head_count_kv", 1},
                                                               {"attention.sliding_window", 128},
                                                               {"context_length", 128}})
    writer.number(std::string("gpt-oss.") + key, value);
  writer.text("gpt-oss.rope.scaling.type", "yarn");
  const auto f32 = [&](const char* name, const std::vector<uint64_t>& shape, size_t count) {
    writer.tensor(name, GgmlType::kF32, shape, std::string(4 * count, '\0'));
  };
  f32("token_embd.weight", {3, 32}, 96);
  f32("blk.0.attn_sinks.weight", {2}, 2);
  f32("blk.0.post_attention_norm.weight", {32}, 32);
  f32("blk.0.ffn_gate_inp.bias", {2}, 2);
  f32("blk.0.ffn_up_exps.bias", {2, 64}, 128);
  writer.tensor("blk.0.ffn_up_exps.weight", GgmlType::kMxfp4, {2, 64, 32},
                std::string(2 * 64 * 17, '\1'));
  const auto path = write_temp("oss.gguf", writer.finish());
  const auto opened = open_checkpoint(path);
  REQUIRE(opened);
  const Checkpoint& checkpoint = **opened;
  CHECK(checkpoint.config()["num_local_experts"] == 2);
  CHECK(checkpoint.config()["sliding_window"] == 128);
  CHECK(checkpoint.config()["rope_scaling"]["truncate"] == false);
  const std::string layer = "model.layers.0.", up = layer + "mlp.switch_mlp.up_proj";
  for (const char* name : {"self_attn.sinks", "post_attention_layernorm.weight", "mlp.router.bias"})
    CHECK(checkpoint.has(layer + name));
  CHECK(**checkpoint.quantization(up) == Quantization{4, 32, QuantMode::kMxfp4});
  CHECK(checkpoint.has(up + ".bias"));
  CHECK_FALSE(checkpoint.has(up + ".biases"));
  const auto scales = checkpoint.tensor(up + ".scales", RowRange{1, 2});
  REQUIRE(scales);
  CHECK(scales->dtype == Dtype::kU8);
  CHECK(scales->shape == std::vector<int64_t>{1, 64, 1});
  CHECK(scales->bytes.size() == 64);
  std::filesystem::remove(path);
}

TEST_CASE("gguf checkpoint: has Hugging Face names, config keys and rows read alone") {
  GgufWriter writer = tiny_llama();
  std::string rows;
  for (int i = 0; i < 3; ++i) rows += q4_1_block(static_cast<float>(i + 1), 0);
  writer.tensor("token_embd.weight", GgmlType::kQ4_1, {3, 32}, rows);
  writer.tensor("blk.0.attn_norm.weight", GgmlType::kF32, {32}, std::string(128, '\0'));
  const auto path = write_temp("tiny.gguf", writer.finish());
  const auto opened = open_checkpoint(path);
  REQUIRE(opened);
  const Checkpoint& checkpoint = **opened;
  CHECK(checkpoint.config()["num_attention_heads"] == 2);
  CHECK(checkpoint.config()["tie_word_embeddings"] == true);
  CHECK(checkpoint.config()["vocab_size"] == 3);
  CHECK(checkpoint.config()["eos_token_id"] == nlohmann::json::array({2}));
  CHECK(checkpoint.has("model.layers.0.input_layernorm.weight"));
  CHECK(**checkpoint.quantization("model.embed_tokens") == Quantization{4, 32});
  CHECK_FALSE(checkpoint.quantization("model.norm")->has_value());
  const auto scales = checkpoint.tensor("model.embed_tokens.scales", RowRange{1, 3});
  REQUIRE(scales);
  CHECK(scales->shape == std::vector<int64_t>{2, 1});
  uint16_t first = 0;
  std::memcpy(&first, scales->bytes.data(), 2);
  CHECK(from_half(first) == 2.0F);
  const auto missing = checkpoint.tensor("model.embed_tokens.bias");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  std::filesystem::remove(path);
}

TEST_CASE("gguf checkpoint: an unknown architecture or tensor type is refused by name") {
  GgufWriter other;
  other.text("general.architecture", "qwen35vlmoe");
  const auto path = write_temp("other.gguf", other.finish());
  const std::string message = open_checkpoint(path).error().message;
  CHECK(message.find("qwen35vlmoe is not supported; the nearest is qwen35,") != std::string::npos);
  CHECK(message.find("minimax-m2") != std::string::npos);

  GgufWriter writer = tiny_llama();
  writer.tensor("token_embd.weight", static_cast<GgmlType>(10), {3, 32}, std::string(64, '\0'));
  const auto typed = write_temp("typed.gguf", writer.finish());
  const auto opened = open_checkpoint(typed);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kUnsupported);
  CHECK(opened.error().message.find("type 10") != std::string::npos);
  std::filesystem::remove(path);
  std::filesystem::remove(typed);
}

/// Opens tiny_llama() in two files, the second of which holds a norm.
Result<std::shared_ptr<const Checkpoint>> open_in_two(const std::string& second_tensor,
                                                      const std::string& opened) {
  GgufWriter first = tiny_llama(), second;
  first.number("split.count", 2);
  second.number("split.count", 2);
  first.tensor("token_embd.weight", GgmlType::kF32, {3, 32}, std::string(3 * 32 * 4, 'x'));
  second.tensor(second_tensor, GgmlType::kF32, {32}, std::string(128, 'y'));
  const auto one = write_temp("parts-00001-of-00002.gguf", first.finish());
  const auto two = write_temp("parts-00002-of-00002.gguf", second.finish());
  auto result = open_checkpoint(opened.empty() ? one : write_temp(opened, first.finish()));
  std::filesystem::remove(one);
  std::filesystem::remove(two);
  return result;
}

TEST_CASE("gguf checkpoint: a model in several files is opened by the first") {
  const auto model = open_in_two("output_norm.weight", "");
  REQUIRE_MESSAGE(model.has_value(), model.error().message);
  const auto norm = (*model)->tensor("model.norm.weight");
  REQUIRE(norm);
  CHECK(norm->bytes.front() == std::byte{'y'});
  CHECK((*model)->tensor("model.embed_tokens.weight")->bytes.front() == std::byte{'x'});
  const auto twice = open_in_two("token_embd.weight", "");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message.find("in two files") != std::string::npos);
  const auto second = open_in_two("output_norm.weight", "parts.gguf");
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("-00001-of-00002.gguf") != std::string::npos);
}

TEST_CASE("gguf checkpoint: two tensors of one name, or one that is not known, are named") {
  for (const auto& [tensor, found] : {std::pair{"blk.0.post_attention_norm.weight", "are model."},
                                      std::pair{"blk.0.ssm_in.weight", "ssm_in.weight is not"}}) {
    GgufWriter writer = tiny_llama();
    writer.tensor("token_embd.weight", GgmlType::kF32, {3, 32}, std::string(3 * 32 * 4, 'x'));
    writer.tensor("blk.0.ffn_norm.weight", GgmlType::kF32, {32}, std::string(128, 'y'));
    writer.tensor(tensor, GgmlType::kF32, {32}, std::string(128, 'y'));
    const auto path = write_temp("names.gguf", writer.finish());
    const auto opened = open_checkpoint(path);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message.find(found) != std::string::npos);
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace tandem::format
