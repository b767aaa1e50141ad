#include "format/layouts/integer_module.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "format/layouts/reordered.h"
#include "format/layouts/scalars.h"
#include "format/layouts/turn.h"

namespace tandem::format {
namespace {

/// The largest group that kernels have, and of which a stored one is a multiple; 0: none.
int kernel_group(int64_t stored) {
  for (const int group : {128, 64, 32})
    if (stored % group == 0) return group;
  return 0;
}

/// Each of a row's numbers `times` times.
Tensor repeated(const Tensor& numbers, int64_t times) {
  if (times == 1) return numbers;
  const size_t size = size_of(numbers.dtype);
  NewTensor out(numbers.dtype, {numbers.shape[0], numbers.shape[1] * times});
  std::byte* to = out.bytes.data();
  for (size_t at = 0; at < numbers.bytes.size(); at += size)
    for (int64_t i = 0; i < times; ++i, to += size)
      std::memcpy(to, numbers.bytes.data() + at, size);
  return out.tensor;
}

Result<Tensor> biases_of(const IntegerModule& module, RowRange rows) {
  const auto scales = module.scales(rows);
  if (!scales) return scales;
  const auto zeros = zeros_of(module, rows);
  if (!zeros) return zeros.error();
  NewTensor out(scales->dtype, scales->shape);
  for (size_t i = 0; i < zeros->size(); ++i) {
    const float scale = scalar_at(scales->bytes.data(), scales->dtype, i);
    put_scalar(out.bytes.data(), scales->dtype, i, -static_cast<float>((*zeros)[i]) * scale);
  }
  return out.tensor;
}

Status check_sizes(const IntegerModule& m) {
  if (m.outputs <= 0 || m.groups <= 0 || m.inputs <= 0 || m.inputs % m.groups != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} inputs do not divide into {} groups of scales: fetch the "
                             "checkpoint again",
                             m.name, m.inputs, m.groups)};
  if (kernel_group(m.inputs / m.groups) == 0)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: groups of {} inputs are not read; multiples of 32 are: convert "
                             "the unquantized model with mlx_lm.convert",
                             m.name, m.inputs / m.groups)};
  const bool has_float_scales =
      m.scale_type == Dtype::kF32 || m.scale_type == Dtype::kF16 || m.scale_type == Dtype::kBF16;
  if (has_float_scales) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: scales of type {} are not read; F32, F16 and BF16 are: convert the "
                           "unquantized model with mlx_lm.convert",
                           m.name, format::name(m.scale_type))};
}

}  // namespace

Result<std::vector<int>> zeros_of(const IntegerModule& module, RowRange rows) {
  if (module.zeros) return module.zeros(rows);
  return std::vector<int>(static_cast<size_t>((rows.end - rows.begin) * module.groups),
                          1 << (module.bits - 1));
}

Status add_integers(const Checkpoint& from, IntegerModule module, Derivations& derivations) {
  if (Status fits = check_sizes(module); !fits) return fits;
  if (!module.group_index.empty()) {
    auto index = read_group_index(from, module);
    if (!index) return index.error();
    if (!is_in_order(*index, module.groups)) {
      add_reordered(std::move(module), *std::move(index), derivations);
      return {};
    }
  }
  const int group = kernel_group(module.inputs / module.groups);
  const int64_t times = module.inputs / module.groups / group;
  const std::vector<int64_t> numbers = {module.outputs, module.inputs / group};
  const std::string name = module.name;
  derivations.quantizations[name] = {.bits = module.bits, .group_size = group};
  // shared: by the three tensors of the module
  const auto shared = std::make_shared<const IntegerModule>(std::move(module));
  derivations.tensors[name + ".weight"] = {
      .dtype = Dtype::kU32,
      .shape = {shared->outputs, shared->inputs * shared->bits / 32},
      .make = [shared](RowRange rows) { return shared->codes(rows); }};
  derivations.tensors[name + ".scales"] = {
      .dtype = shared->scale_type,
      .shape = numbers,
      .make = [shared, times](RowRange rows) -> Result<Tensor> {
        auto scales = shared->scales(rows);
        return scales ? repeated(*scales, times) : scales;
      }};
  derivations.tensors[name + ".biases"] = {
      .dtype = shared->scale_type,
      .shape = numbers,
      .make = [shared, times](RowRange rows) -> Result<Tensor> {
        auto biases = biases_of(*shared, rows);
        return biases ? repeated(*biases, times) : biases;
      }};
  return {};
}

Result<Tensor> turned(const Checkpoint& from, const std::string& name, RowRange columns) {
  const auto stored = from.tensor(name);
  if (!stored) return stored;
  const size_t size = size_of(stored->dtype);
  const auto height = static_cast<size_t>(stored->shape[0]);
  const auto width = static_cast<size_t>(stored->shape[1]);
  const auto first = static_cast<size_t>(columns.begin);
  NewTensor out(stored->dtype, {columns.end - columns.begin, stored->shape[0]});
  const size_t rows = static_cast<size_t>(columns.end) - first;
  over_threads(rows, rows * height, [&](size_t begin, size_t end) {
    turn(stored->bytes.data(), {height, width, first + begin, end - begin}, size,
         out.bytes.data() + begin * height * size);
  });
  return out.tensor;
}

unsigned code_at(const std::byte* words, int bits, size_t at) {
  const size_t bit = at * static_cast<size_t>(bits);
  // A code of up to 8 bits lies in two bytes; the second is read only where it is needed.
  const auto low = static_cast<unsigned>(words[bit / 8]);
  const bool crosses = bit % 8 + static_cast<size_t>(bits) > 8;
  const unsigned high = crosses ? static_cast<unsigned>(words[bit / 8 + 1]) : 0;
  return ((high << 8 | low) >> (bit % 8)) & ((1U << bits) - 1);
}

Status check_is(const Checkpoint& from,
                const std::string& name,
                Dtype dtype,
                const std::vector<int64_t>& shape) {
  const auto found = from.describe(name);
  if (!found) return found.error();
  if (found->dtype == dtype && found->shape == shape) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} should be {} [{}], is {} [{}]: fetch the checkpoint and config.json "
                           "again",
                           name, format::name(dtype), fmt::join(shape, ", "),
                           format::name(found->dtype), fmt::join(found->shape, ", "))};
}

}  // namespace tandem::format
