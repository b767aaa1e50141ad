#include "format/layouts/fp8.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "format/layouts/scalars.h"

namespace tandem::format {
namespace {

constexpr int64_t kUsualBlock = 128;

/// Which scale belongs to an element: those of a matrix are [any, columns], one for a block.
struct ScaleGrid {
  std::string name;
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  int64_t columns = 0;
  int64_t matrix = 0;  // scales of a matrix in a stack; 0: all matrices have the same
};

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The value of an E4M3 number: no infinities, one NaN of each sign.
float e4m3(unsigned code) {
  const float sign = (code & 0x80U) != 0 ? -1.0F : 1.0F;
  const int exponent = static_cast<int>(code >> 3) & 15;
  const int fraction = static_cast<int>(code & 7U);
  if (exponent == 15 && fraction == 7) return std::copysign(NAN, sign);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
}

const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> out{};
    for (unsigned code = 0; code < out.size(); ++code) out[code] = e4m3(code);
    return out;
  }();
  return values;
}

/// A matrix of a stack, or all there is.
struct Fp8Matrix {
  const std::byte* codes;
  const std::byte* scales;
  std::byte* out;
  int64_t columns;
};

/// Rows [begin, end) of which `matrix` holds those from `first` on.
void convert_rows(
    const Fp8Matrix& m, const ScaleGrid& grid, Dtype scale, RowRange rows, int64_t first) {
  const auto& values = e4m3_values();
  std::array<uint16_t, 256> table{};
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t end = std::min(rows.end, (row / grid.block_rows + 1) * grid.block_rows);
    for (int64_t b = 0; b < grid.columns; ++b) {
      const float factor =
          scalar_at(m.scales, scale, static_cast<size_t>(row / grid.block_rows * grid.columns + b));
      for (size_t i = 0; i < table.size(); ++i) table[i] = to_bfloat16(values[i] * factor);
      const int64_t from = b * grid.block_columns;
      const int64_t to = std::min(from + grid.block_columns, m.columns);
      for (int64_t r = row; r < end; ++r) {
        const int64_t at = (r - first) * m.columns;
        for (int64_t c = at + from; c < at + to; ++c)
          std::memcpy(m.out + 2 * c, &table[static_cast<size_t>(m.codes[c])], 2);
      }
    }
    row = end;
  }
}

/// Rows of a matrix, or matrices of a stack, times their scales.
Result<Tensor> dequantized(const Checkpoint& from,
                           const std::string& name,
                           const ScaleGrid& grid,
                           RowRange rows) {
  const auto codes = from.tensor(name, rows);
  if (!codes) return codes;
  const auto scales = from.tensor(grid.name);
  if (!scales) return scales;
  NewTensor out(Dtype::kBF16, codes->shape);
  const bool is_stack = codes->shape.size() == 3;
  const int64_t columns = codes->shape.back();
  const int64_t height = is_stack ? codes->shape[1] : 0;
  over_threads(static_cast<size_t>(rows.end - rows.begin), codes->bytes.size(),
               [&](size_t begin, size_t end) {
                 const RowRange part{rows.begin + static_cast<int64_t>(begin),
                                     rows.begin + static_cast<int64_t>(end)};
                 Fp8Matrix m{codes->bytes.data(), scales->bytes.data(), out.bytes.data(), columns};
                 if (!is_stack) return convert_rows(m, grid, scales->dtype, part, rows.begin);
                 for (int64_t i = part.begin; i < part.end; ++i) {
                   const int64_t at = (i - rows.begin) * height * columns;
                   const Fp8Matrix one{
                       m.codes + at,
                       m.scales + static_cast<size_t>(i * grid.matrix) * size_of(scales->dtype),
                       m.out + 2 * at, columns};
                   convert_rows(one, grid, scales->dtype, {0, height}, 0);
                 }
               });
  return out.tensor;
}

/// The block that config.json gives, [rows, columns].
Result<std::array<int64_t, 2>> block_of(const nlohmann::json& config) {
  const std::array<int64_t, 2> usual = {kUsualBlock, kUsualBlock};
  const auto quantization = config.find("quantization_config");
  if (quantization == config.end() || !quantization->is_object()) return usual;
  const auto found = quantization->find("weight_block_size");
  if (found == quantization->end() || found->is_null()) return usual;
  std::array<int64_t, 2> block{};
  const bool is_pair = found->is_array() && found->size() == 2;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool is_good =
        is_pair && (*found)[i].is_number_integer() && (*found)[i] > 0 && (*found)[i] <= (1 << 20);
    if (!is_good)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("config: quantization_config.weight_block_size should be two "
                               "positive integers, is {}: correct config.json",
                               found->dump())};
    block[i] = (*found)[i].get<int64_t>();
  }
  return block;
}

/// How scales of this shape cover the matrices of a tensor; none when they do not.
std::optional<ScaleGrid> grid_of(const std::string& name,
                                 const Tensor& weight,
                                 std::vector<int64_t> scales,
                                 const std::array<int64_t, 2>& block) {
  const size_t axes = weight.shape.size();
  const int64_t rows = weight.shape[axes - 2], columns = weight.shape[axes - 1];
  ScaleGrid grid{.name = name};
  const bool is_one = std::ranges::all_of(scales, [](int64_t n) { return n == 1; });
  const bool is_per_matrix = axes == 3 && !scales.empty() && scales[0] == weight.shape[0];
  if (is_per_matrix && !(is_one && scales.size() < 3)) {
    scales.erase(scales.begin());
    grid.matrix = 1;
    for (const int64_t n : scales) grid.matrix *= n;
  } else if (axes == 3 && !is_one) {
    return std::nullopt;
  }
  if (std::ranges::all_of(scales, [](int64_t n) { return n == 1; })) {
    grid.block_rows = rows, grid.block_columns = columns, grid.columns = 1;
  } else if (scales == std::vector<int64_t>{ceiling(rows, block[0]), ceiling(columns, block[1])}) {
    grid.block_rows = block[0], grid.block_columns = block[1], grid.columns = scales[1];
  } else if (scales == std::vector<int64_t>{rows} || scales == std::vector<int64_t>{rows, 1}) {
    grid.block_rows = 1, grid.block_columns = columns, grid.columns = 1;
  } else {
    return std::nullopt;
  }
  return grid;
}

Status add_one(const Checkpoint& from,
               const std::string& name,
               const Tensor& weight,
               const std::array<int64_t, 2>& block,
               Derivations& derivations) {
  std::string scale = name + "_scale_inv";
  if (!from.has(scale)) scale = name + "_scale";
  const auto scales = from.describe(scale);
  if (!scales)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is of type F8_E4M3, but there are no scales {}_scale_inv or "
                             "{}_scale: fetch the checkpoint again",
                             name, name, name)};
  const bool has_good_type = is_scalar(scales->dtype);
  const size_t axes = weight.shape.size();
  const bool is_empty = std::ranges::any_of(weight.shape, [](int64_t n) { return n == 0; });
  const auto grid = (axes == 2 || axes == 3) && !is_empty
                        ? grid_of(scale, weight, scales->shape, block)
                        : std::optional<ScaleGrid>();
  if (!has_good_type || !grid)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} of type {} and shape [{}] does not fit {} of shape [{}] in blocks "
                             "of {} by {}: fetch the checkpoint and config.json again",
                             scale, format::name(scales->dtype), fmt::join(scales->shape, ", "),
                             name, fmt::join(weight.shape, ", "), block[0], block[1])};
  derivations.hidden.insert(scale);
  derivations.tensors[name] = {.dtype = Dtype::kBF16,
                               .shape = weight.shape,
                               .make = [&from, name, grid = *grid](RowRange rows) {
                                 return dequantized(from, name, grid, rows);
                               }};
  return {};
}

}  // namespace

Status add_fp8(const Checkpoint& from, Derivations& derivations) {
  const auto block = block_of(from.config());
  if (!block) return block.error();
  for (const std::string& name : from.names()) {
    const auto tensor = from.describe(name);
    if (!tensor) return tensor.error();
    if (tensor->dtype == Dtype::kF8E5M2)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} is of type F8_E5M2, which is not read; F8_E4M3 is: convert the "
                               "unquantized model with mlx_lm.convert",
                               name)};
    if (tensor->dtype != Dtype::kF8E4M3 || derivations.tensors.contains(name)) continue;
    if (name.ends_with("_scale"))
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} is a scale of type F8_E4M3, as NVFP4 has them, which is not "
                               "read: convert the unquantized model with mlx_lm.convert -q",
                               name)};
    if (Status added = add_one(from, name, *tensor, *block, derivations); !added) return added;
  }
  return {};
}

}  // namespace tandem::format
