#include "kernels/packed_matrix.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/data_test.h"
#include "kernels/matmul.h"

using namespace tandem;
using namespace tandem::kernels;

namespace {

/// The quantization vectors that mlx made.
class Golden {
 public:
  Golden() {
    std::ifstream file(TANDEM_SOURCE_DIR "/tests/vectors/golden_quant.safetensors",
                       std::ios::binary);
    uint64_t length = 0;
    file.read(reinterpret_cast<char*>(&length), 8);
    std::string header(length, '\0');
    file.read(header.data(), static_cast<std::streamsize>(length));
    header_ = nlohmann::json::parse(header);
    data_.assign(std::istreambuf_iterator<char>(file), {});
  }

  const char* data(const std::string& name) const {
    return data_.data() + header_.at(name).at("data_offsets").at(0).get<size_t>();
  }
  size_t extent(const std::string& name, size_t axis) const {
    return header_.at(name).at("shape").at(axis).get<size_t>();
  }

 private:
  nlohmann::json header_;
  std::string data_;
};

std::vector<float> unpack(const PackedMatrix& w) {
  WorkerPool pool(1);
  std::vector<uint32_t> ids(w.outputs());
  for (uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<float> out(w.outputs() * w.inputs());
  gather_rows(pool, w, ids.data(), ids.size(), out.data());
  return out;
}

PackedMatrix pack(const QuantizedView& view) {
  auto packed = PackedMatrix::from_quantized(view);
  REQUIRE(packed);
  return std::move(*packed);
}

}  // namespace

TEST_CASE("packed matrix: every affine width and group decodes to mlx's values") {
  const Golden golden;
  for (const uint32_t bits : {2u, 3u, 4u, 5u, 6u, 8u}) {
    for (const uint32_t group : {32u, 64u, 128u}) {
      CAPTURE(bits);
      CAPTURE(group);
      const std::string name = fmt::format("affine.b{}.g{}.", bits, group);
      QuantizedView view;
      view.codes = golden.data(name + "weight");
      view.scales = golden.data(name + "scales");
      view.biases = golden.data(name + "biases");
      view.rows = golden.extent(name + "dequant", 0);
      view.cols = golden.extent(name + "dequant", 1);
      view.bits = bits;
      view.group = group;
      const std::vector<float> out = unpack(pack(view));
      std::vector<float> want(view.rows * view.cols);
      std::memcpy(want.data(), golden.data(name + "dequant"), want.size() * sizeof(float));
      CHECK(same_bits(out, want));
    }
  }
}

TEST_CASE("packed matrix: mxfp4, mxfp8 and nvfp4 decode to mlx's values") {
  const Golden golden;
  for (const auto& [mode, floats] :
       {std::pair("mxfp4.", TestFloats::mxfp4()), std::pair("mxfp8.", TestFloats::mxfp8()),
        std::pair("nvfp4.", TestFloats::nvfp4())}) {
    CAPTURE(mode);
    const std::string name = mode;
    QuantizedView view;
    view.codes = golden.data(name + "weight");
    view.scales = golden.data(name + "scales");
    view.scale_type = floats.scales;
    view.kind = floats.kind;
    view.rows = golden.extent(name + "dequant", 0);
    view.cols = golden.extent(name + "dequant", 1);
    view.bits = static_cast<uint32_t>(golden.extent(name + "weight", 1) * 32 / view.cols);
    view.group = static_cast<uint32_t>(view.cols / golden.extent(name + "scales", 1));
    CHECK(view.group == floats.group);
    const std::vector<float> out = unpack(pack(view));
    std::vector<float> want(view.rows * view.cols);
    std::memcpy(want.data(), golden.data(name + "dequant"), want.size() * sizeof(float));
    CHECK(same_bits(out, want));
  }
}

TEST_CASE("packed matrix: codes of floats take what they take in the file") {
  TestRandom random(4);
  const TestQuantized source(random, 32, 3, TestFloats::mxfp4());
  CHECK(pack(source.view).bytes() == source.codes.size() + source.scales.size());
}

TEST_CASE("scalar types: every float of 8 bits has its value") {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<uint8_t>(bits);
    if ((bits & 0x7f) != 0x7f)
      CHECK(static_cast<double>(from_e4m3(byte)) == value_of_float(bits, 4, 3));
    if (bits > 0 && bits < 255)
      CHECK(from_e8m0(byte) == std::ldexp(1.0f, static_cast<int>(bits) - 127));
  }
  for (uint32_t code = 0; code < 16; ++code)
    CHECK(kDoubledE2m1[code] == 2 * value_of_float(code, 2, 1));
}

TEST_CASE("packed matrix: slices and stacks hold the same rows as the whole") {
  TestRandom random(1);
  for (int turn = 0; turn < 60; ++turn) {
    const uint32_t group = random.pick({32u, 64u, 128u});
    const size_t groups = random.size(1, 4);
    const size_t rows = random.size(1, 50);
    const TestQuantized source =
        random.chance(0.2) && group == 32
            ? TestQuantized(random, rows, groups, TestFloats::mxfp4())
            : TestQuantized(random, rows, groups, random.pick({2u, 3u, 4u, 5u, 6u, 8u}), group);
    const std::vector<float> whole = unpack(pack(source.view));

    QuantizedView part = source.view;
    part.row_slice.begin = random.size(0, rows - 1);
    part.row_slice.end = random.size(part.row_slice.begin + 1, rows);
    const size_t first_group = random.size(0, groups - 1);
    const size_t end_group = random.size(first_group + 1, groups);
    part.col_slice = {first_group * group, end_group * group};
    const QuantizedView stack[] = {part, part};
    const auto packed = PackedMatrix::from_quantized(stack);
    REQUIRE(packed);
    const size_t taken = part.row_slice.end - part.row_slice.begin;
    REQUIRE(packed->outputs() == 2 * taken);
    const std::vector<float> out = unpack(*packed);
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t row = part.row_slice.begin + i / packed->inputs() % taken;
      const size_t col = part.col_slice.begin + i % packed->inputs();
      REQUIRE(out[i] == whole[row * source.view.cols + col]);
    }
  }
}

TEST_CASE("packed matrix: dense values survive in every type, with strides and slices") {
  TestRandom random(2);
  for (int turn = 0; turn < 60; ++turn) {
    DenseView view;
    view.type = random.pick({ScalarType::kF32, ScalarType::kF16, ScalarType::kBf16});
    view.rows = random.size(1, 40);
    view.cols = random.size(1, 70);
    view.row_stride = view.cols + random.size(0, 5);
    view.row_slice.begin = random.size(0, view.rows - 1);
    view.col_slice.begin = random.size(0, view.cols - 1);
    const auto data = encode(random.normals(view.rows * view.row_stride), view.type);
    view.data = data.data();
    const auto packed = PackedMatrix::from_dense(view);
    REQUIRE(packed);
    const std::vector<float> out = unpack(*packed);
    REQUIRE(out.size() == (view.rows - view.row_slice.begin) * (view.cols - view.col_slice.begin));
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t row = view.row_slice.begin + i / packed->inputs();
      const size_t col = view.col_slice.begin + i % packed->inputs();
      REQUIRE(out[i] == load_scalar(data.data(), view.type, row * view.row_stride + col));
    }
  }
}

TEST_CASE("packed matrix: what does not fit is an error that says what would") {
  TestRandom random(3);
  TestQuantized source(random, 4, 2, 4, 64);
  source.view.scale_type = ScalarType::kF32;
  const auto error = [&](auto... changes) {
    std::vector<QuantizedView> views(sizeof...(changes), source.view);
    size_t at = 0;
    (changes(views[at++]), ...);
    const auto packed = PackedMatrix::from_quantized(views);
    REQUIRE(!packed);
    return packed.error();
  };
  const auto invalid = [](const char* text) { return Error{ErrorCode::kInvalid, text}; };
  const auto unsupported = [](const char* text) { return Error{ErrorCode::kUnsupported, text}; };
  const auto same = [](QuantizedView&) {};
  CHECK(error([](QuantizedView& view) { view.bits = 7; }) ==
        unsupported("[pack] codes must have 2, 3, 4, 5, 6 or 8 bits, got 7"));
  CHECK(error([](QuantizedView& view) { view.group = 48; }) ==
        unsupported("[pack] groups must have 32, 64 or 128 columns, got 48"));
  CHECK(error([](QuantizedView& view) { view.cols = 100; }) ==
        invalid("[pack] columns must come in whole groups of 64, got 100"));
  CHECK(error([](QuantizedView& view) { view.row_slice = {2, 5}; }) ==
        invalid("[pack] a slice must hold some of 4 rows, got [2, 5)"));
  CHECK(error([](QuantizedView& view) { view.col_slice = {32, 128}; }) ==
        invalid("[pack] a slice of columns must hold whole groups of 64, got [32, 128)"));
  CHECK(error(same, [](QuantizedView& view) { view.col_slice.end = 64; }) ==
        invalid("[pack] stacked matrices must have 128 columns as the first has, got 64"));
  CHECK(
      error(same, [](QuantizedView& view) { view.bits = 3; }) ==
      invalid("[pack] stacked matrices must have one format, got 4-bit codes in groups of 64 with "
              "float32 scales and 3-bit codes in groups of 64 with float32 scales"));
  CHECK(error([](QuantizedView& view) { view.kind = CodeKind::kE2m1; }) ==
        unsupported("[pack] there is no product with 4-bit E2M1 codes in groups of 64 with float32 "
                    "scales"));
  CHECK(error([](QuantizedView& view) {
          view.kind = CodeKind::kE4m3;
          view.scale_type = ScalarType::kE8m0;
        }) == unsupported("[pack] there is no product with 4-bit E4M3 codes in groups of 64 with "
                          "E8M0 scales"));
  CHECK(error() == invalid("[pack] expected one matrix or more, got none"));

  DenseView dense{.data = source.view.scales, .rows = 1, .cols = 2};
  DenseView half = dense;
  half.type = ScalarType::kF16;
  const DenseView stack[] = {dense, half};
  const auto packed = PackedMatrix::from_dense(stack);
  REQUIRE(!packed);
  CHECK(packed.error() ==
        invalid("[pack] stacked matrices must have one type, got float32 and float16"));
}

TEST_CASE("scalar types: halves convert exactly, subnormal and special values too") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const int exponent = (half >> 10) & 31;
    const float fraction = static_cast<float>(half & 0x3ff);
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) {
      CHECK((fraction == 0 ? from_f16(half) == sign * INFINITY : std::isnan(from_f16(half))));
    } else if (exponent == 0) {
      REQUIRE(from_f16(half) == sign * std::ldexp(fraction, -24));
    } else {
      REQUIRE(from_f16(half) == sign * std::ldexp(1024 + fraction, exponent - 25));
    }
  }
}
