#include "format/layouts/gptq.h"

#include <cstring>

#include "format/layouts/integer_module.h"

namespace tandem::format {
namespace {

/// What config.json says of all modules.
struct GptqMethod {
  int64_t bits = 4;
  int zero_offset = 1;  // added to stored zeros
};

struct GptqNames {
  std::string module, qweight, qzeros, scales, g_idx;

  explicit GptqNames(const std::string& name)
      : module(name),
        qweight(name + ".qweight"),
        qzeros(name + ".qzeros"),
        scales(name + ".scales"),
        g_idx(name + ".g_idx") {}
};

Result<std::vector<int>> gptq_zeros(
    const Checkpoint& from, const std::string& name, int bits, int offset, RowRange rows) {
  const auto words = from.tensor(name);
  if (!words) return words.error();
  const int64_t groups = words->shape[0], width = words->shape[1];
  std::vector<int> out;
  out.reserve(static_cast<size_t>((rows.end - rows.begin) * groups));
  for (int64_t o = rows.begin; o < rows.end; ++o)
    for (int64_t g = 0; g < groups; ++g)
      out.push_back(offset + static_cast<int>(code_at(words->bytes.data() + 4 * g * width, bits,
                                                      static_cast<size_t>(o))));
  return out;
}

bool is_gptq_width(int64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

/// Bits and sizes, from the tensors' shapes where they tell.
Result<IntegerModule> sizes_of(const Checkpoint& from, const GptqNames& names, int64_t bits) {
  const auto words = from.describe(names.qweight);
  if (!words) return words.error();
  const auto scales = from.describe(names.scales);
  if (!scales) return scales.error();
  const bool are_matrices = words->shape.size() == 2 && scales->shape.size() == 2;
  const int64_t height = are_matrices ? words->shape[0] : 0;
  int64_t inputs = height * 32 / bits;
  if (from.has(names.g_idx)) {
    const auto index = from.describe(names.g_idx);
    if (!index) return index.error();
    inputs = index->shape.size() == 1 ? index->shape[0] : 0;
    if (inputs > 0) bits = height * 32 / inputs;
  }
  if (!is_gptq_width(bits))
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{}: {} words for {} inputs are no weights of 2, 3, 4 or 8 bits: fetch "
                    "the checkpoint and config.json again",
                    names.qweight, height, inputs)};
  const int64_t outputs = are_matrices ? scales->shape[1] : 0;
  if (inputs % 32 != 0 || outputs * bits % 32 != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} inputs and {} outputs of {} bits do not fill words: fetch the "
                             "checkpoint again",
                             names.qweight, inputs, outputs, bits)};
  return IntegerModule{.name = names.module,
                       .outputs = outputs,
                       .inputs = inputs,
                       .groups = are_matrices ? scales->shape[0] : 0,
                       .bits = static_cast<int>(bits),
                       .scale_type = scales->dtype};
}

Status add_gptq_module(const Checkpoint& from,
                       const GptqNames& names,
                       const GptqMethod& method,
                       Derivations& derivations) {
  auto module = sizes_of(from, names, method.bits);
  if (!module) return module.error();
  const int64_t bits = module->bits, groups = module->groups, outputs = module->outputs;
  if (Status fits =
          check_is(from, names.qweight, Dtype::kI32, {module->inputs * bits / 32, outputs});
      !fits)
    return fits;
  if (Status fits = check_is(from, names.qzeros, Dtype::kI32, {groups, outputs * bits / 32}); !fits)
    return fits;
  module->codes = [&from, name = names.qweight](RowRange rows) {
    auto codes = turned(from, name, rows);
    if (codes) codes->dtype = Dtype::kU32;
    return codes;
  };
  module->scales = [&from, name = names.scales](RowRange rows) { return turned(from, name, rows); };
  module->zeros = [&from, name = names.qzeros, bits, offset = method.zero_offset](RowRange rows) {
    return gptq_zeros(from, name, static_cast<int>(bits), offset, rows);
  };
  if (from.has(names.g_idx)) module->group_index = names.g_idx;
  derivations.hidden.insert({names.qweight, names.qzeros, names.g_idx});
  return add_integers(from, *std::move(module), derivations);
}

Result<GptqMethod> read_method(const nlohmann::json& json) {
  GptqMethod method;
  const nlohmann::json bits = json.value("bits", nlohmann::json(4));
  if (!bits.is_number_integer() || !is_gptq_width(bits.get<int64_t>()))
    return Error{ErrorCode::kUnsupported,
                 fmt::format("config: quantization_config.bits {} of GPTQ is not read; 2, 3, 4 and "
                             "8 are: convert the unquantized model with mlx_lm.convert",
                             bits.dump())};
  method.bits = bits.get<int64_t>();
  const nlohmann::json form = json.value("checkpoint_format", nlohmann::json("gptq"));
  if (form == "gptq_v2")
    method.zero_offset = 0;
  else if (form != "gptq")
    return Error{ErrorCode::kUnsupported,
                 fmt::format("config: quantization_config.checkpoint_format {} is not read; "
                             "\"gptq\" and \"gptq_v2\" are: convert the unquantized model with "
                             "mlx_lm.convert",
                             form.dump())};
  return method;
}

}  // namespace

Status add_gptq(const Checkpoint& from, const nlohmann::json& json, Derivations& derivations) {
  constexpr std::string_view kQweight = ".qweight";
  const auto method = read_method(json);
  if (!method) return method.error();
  for (const std::string& name : from.names()) {
    if (!name.ends_with(kQweight)) continue;
    const GptqNames names(name.substr(0, name.size() - kQweight.size()));
    if (Status added = add_gptq_module(from, names, *method, derivations); !added) return added;
  }
  return {};
}

}  // namespace tandem::format
