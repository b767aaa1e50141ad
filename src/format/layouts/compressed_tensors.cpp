#include "format/layouts/compressed_tensors.h"

#include <fmt/ranges.h>

#include <cstring>

#include "format/layouts/integer_module.h"

namespace tandem::format {
namespace {

/// The one number of bits of all groups of integers in config_groups.
Result<int> packed_bits(const nlohmann::json& method) {
  const auto groups = method.find("config_groups");
  const bool has_groups = groups != method.end() && groups->is_object();
  std::optional<int64_t> bits;
  for (const auto& group : has_groups ? *groups : nlohmann::json::object()) {
    const nlohmann::json* weights =
        group.is_object() && group.contains("weights") ? &group.at("weights") : nullptr;
    if (weights == nullptr || !weights->is_object()) continue;
    if (weights->value("type", nlohmann::json("int")) != "int") continue;  // FP8, never packed
    const nlohmann::json own = weights->value("num_bits", nlohmann::json(4));
    const bool is_readable = own == 4 || own == 8;
    if (!is_readable || bits.value_or(own.get<int64_t>()) != own.get<int64_t>())
      return Error{ErrorCode::kUnsupported,
                   fmt::format("config: quantization_config.config_groups has weights of {} bits; "
                               "4 or 8, the same for all groups, are read: convert the unquantized "
                               "model with mlx_lm.convert",
                               own.dump())};
    bits = own.get<int64_t>();
  }
  return static_cast<int>(bits.value_or(4));
}

/// Whether weight_shape, which the packing cannot tell where it pads, is what the words hold.
Status check_shape(const Checkpoint& from,
                   const std::string& name,
                   int64_t outputs,
                   int64_t inputs) {
  if (!from.has(name)) return {};
  const auto shape = from.tensor(name);
  if (!shape) return shape.error();
  int64_t sides[2] = {};
  const size_t size = size_of(shape->dtype);
  const bool is_pair = shape->shape == std::vector<int64_t>{2} &&
                       (shape->dtype == Dtype::kI32 || shape->dtype == Dtype::kI64);
  for (size_t i = 0; is_pair && i < 2; ++i)
    std::memcpy(&sides[i], shape->bytes.data() + i * size, size);  // little-endian
  if (is_pair && sides[0] == outputs && sides[1] == inputs) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} should be [{}, {}], as the packed weights are, is [{}, {}]: fetch "
                           "the checkpoint and config.json again",
                           name, outputs, inputs, sides[0], sides[1])};
}

/// Zeros of type I8, or packed along the outputs, as zeros of codes from 0 on.
Result<std::vector<int>> compressed_zeros(const Checkpoint& from,
                                          const std::string& name,
                                          int bits,
                                          RowRange rows) {
  const auto stored = from.tensor(name);
  if (!stored) return stored.error();
  const int64_t groups = stored->shape[1];
  const bool is_packed = stored->dtype == Dtype::kI32;
  std::vector<int> out;
  out.reserve(static_cast<size_t>((rows.end - rows.begin) * groups));
  const int64_t per_word = 32 / bits;
  for (int64_t o = rows.begin; o < rows.end; ++o)
    for (int64_t g = 0; g < groups; ++g) {
      const std::byte* const word =
          stored->bytes.data() + (is_packed ? 4 * (o / per_word * groups + g) : o * groups + g);
      out.push_back(is_packed
                        ? static_cast<int>(code_at(word, bits, static_cast<size_t>(o % per_word)))
                        : static_cast<int8_t>(*word) + (1 << (bits - 1)));
    }
  return out;
}

Status add_zeros(const Checkpoint& from, const std::string& name, IntegerModule& module) {
  const auto zeros = from.describe(name);
  if (!zeros) return zeros.error();
  const int64_t per_word = 32 / module.bits;
  const bool is_packed = zeros->dtype == Dtype::kI32;
  const int64_t rows = is_packed ? (module.outputs + per_word - 1) / per_word : module.outputs;
  if (Status fits =
          check_is(from, name, is_packed ? Dtype::kI32 : Dtype::kI8, {rows, module.groups});
      !fits)
    return fits;
  module.zeros = [&from, name, bits = module.bits](RowRange r) {
    return compressed_zeros(from, name, bits, r);
  };
  return {};
}

/// What both forms share: scales, and zeros where there are any.
Status add_compressed_module(const Checkpoint& from,
                             IntegerModule module,
                             Derivations& derivations) {
  const std::string scale = module.name + ".weight_scale",
                    zero = module.name + ".weight_zero_point";
  const std::string g_idx = module.name + ".weight_g_idx";
  if (from.has(g_idx)) {
    module.group_index = g_idx;
    derivations.hidden.insert(g_idx);
  }
  const auto scales = from.describe(scale);
  if (!scales) return scales.error();
  module.groups = scales->shape.size() == 2 ? scales->shape[1] : 0;
  module.scale_type = scales->dtype;
  if (Status fits = check_is(from, scale, scales->dtype, {module.outputs, module.groups}); !fits)
    return fits;
  module.scales = [&from, scale](RowRange rows) { return from.tensor(scale, rows); };
  if (from.has(zero)) {
    if (Status fits = add_zeros(from, zero, module); !fits) return fits;
    derivations.hidden.insert(zero);
  }
  derivations.hidden.insert(scale);
  return add_integers(from, std::move(module), derivations);
}

Status add_packed(const Checkpoint& from,
                  const std::string& name,
                  int bits,
                  Derivations& derivations) {
  const std::string packed = name + ".weight_packed", shape = name + ".weight_shape";
  const auto words = from.describe(packed);
  if (!words) return words.error();
  if (words->dtype != Dtype::kI32 || words->shape.size() != 2)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{} of type {} and shape [{}] is not read; I32 words of 4 or 8 bits are "
                    "(format pack-quantized): convert the unquantized model with "
                    "mlx_lm.convert",
                    packed, format::name(words->dtype), fmt::join(words->shape, ", "))};
  IntegerModule module{.name = name,
                       .outputs = words->shape[0],
                       .inputs = words->shape[1] * 32 / bits,
                       .bits = bits};
  module.codes = [&from, packed, shape, outputs = module.outputs,
                  inputs = module.inputs](RowRange rows) -> Result<Tensor> {
    if (const Status fits = check_shape(from, shape, outputs, inputs); !fits) return fits.error();
    auto codes = from.tensor(packed, rows);
    if (codes) codes->dtype = Dtype::kU32;
    return codes;
  };
  derivations.hidden.insert({packed, shape});
  return add_compressed_module(from, std::move(module), derivations);
}

/// Signed bytes as codes from 0 on, four to a word.
Result<Tensor> codes_of_bytes(const Checkpoint& from, const std::string& name, RowRange rows) {
  const auto stored = from.tensor(name, rows);
  if (!stored) return stored;
  NewTensor out(Dtype::kU32, {stored->shape[0], stored->shape[1] / 4});
  for (size_t i = 0; i < out.bytes.size(); ++i) out.bytes[i] = stored->bytes[i] ^ std::byte{0x80};
  return out.tensor;
}

Status add_bytes(const Checkpoint& from,
                 const std::string& name,
                 const Tensor& weight,
                 Derivations& derivations) {
  const std::string bytes = name + ".weight";
  if (weight.shape.size() != 2 || weight.shape[1] % 32 != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} should be a matrix of rows of multiples of 32, is [{}]: fetch the "
                             "checkpoint again",
                             bytes, fmt::join(weight.shape, ", "))};
  IntegerModule module{
      .name = name, .outputs = weight.shape[0], .inputs = weight.shape[1], .bits = 8};
  module.codes = [&from, bytes](RowRange rows) { return codes_of_bytes(from, bytes, rows); };
  return add_compressed_module(from, std::move(module), derivations);
}

}  // namespace

Status add_compressed_integers(const Checkpoint& from,
                               const nlohmann::json& method,
                               Derivations& derivations) {
  constexpr std::string_view kPacked = ".weight_packed", kWeight = ".weight";
  const auto bits = packed_bits(method);
  if (!bits) return bits.error();
  for (const std::string& name : from.names()) {
    Status added;
    if (name.ends_with(kPacked)) {
      added = add_packed(from, name.substr(0, name.size() - kPacked.size()), *bits, derivations);
    } else if (name.ends_with(kWeight)) {
      const auto weight = from.describe(name);
      if (!weight) return weight.error();
      if (weight->dtype != Dtype::kI8) continue;
      added = add_bytes(from, name.substr(0, name.size() - kWeight.size()), *weight, derivations);
    }
    if (!added) return added;
  }
  return {};
}

}  // namespace tandem::format
