#include "format/layouts/reordered.h"

#include <cstring>

#include "format/layouts/scalars.h"

namespace tandem::format {
namespace {

/// Rows of the dense matrix.
Result<Tensor> dense_rows(const IntegerModule& module, const GroupIndex& index, RowRange rows) {
  const auto codes = module.codes(rows);
  if (!codes) return codes;
  const auto scales = module.scales(rows);
  if (!scales) return scales;
  const auto zeros = zeros_of(module, rows);
  if (!zeros) return zeros.error();
  NewTensor out(scales->dtype, {codes->shape[0], module.inputs});
  const auto groups = static_cast<size_t>(module.groups);
  const size_t inputs = index.size();
  const auto convert = [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      for (size_t i = 0; i < inputs; ++i) {
        const size_t at = row * inputs + i, g = row * groups + static_cast<size_t>(index[i]);
        const int code = static_cast<int>(code_at(codes->bytes.data(), module.bits, at));
        const float scale = scalar_at(scales->bytes.data(), scales->dtype, g);
        put_scalar(out.bytes.data(), scales->dtype, at,
                   static_cast<float>(code - (*zeros)[g]) * scale);
      }
  };
  over_threads(static_cast<size_t>(codes->shape[0]), out.bytes.size(), convert);
  return out.tensor;
}

}  // namespace

Result<GroupIndex> read_group_index(const Checkpoint& from, const IntegerModule& module) {
  const std::string& name = module.group_index;
  if (Status fits = check_is(from, name, Dtype::kI32, {module.inputs}); !fits) return fits.error();
  const auto stored = from.tensor(name);
  if (!stored) return stored.error();
  GroupIndex index;
  for (int64_t i = 0; i < module.inputs; ++i) {
    int32_t group = 0;
    std::memcpy(&group, stored->bytes.data() + 4 * i, sizeof(group));
    if (group < 0 || group >= module.groups)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: input {} is of group {}, of {}: fetch the checkpoint again",
                               name, i, group, module.groups)};
    index.push_back(group);
  }
  return index;
}

bool is_in_order(const GroupIndex& index, int64_t groups) {
  const int64_t size = static_cast<int64_t>(index.size()) / groups;
  for (size_t i = 0; i < index.size(); ++i)
    if (index[i] != static_cast<int64_t>(i) / size) return false;
  return true;
}

void add_reordered(IntegerModule module, GroupIndex index, Derivations& derivations) {
  derivations.hidden.insert(module.name + ".scales");
  derivations.notice =
      "some matrices of this checkpoint were quantized in another order than that of their inputs "
      "(desc_act, actorder), which no kernel here computes with: they are held in 16 bits and take "
      "several times the memory of the file; a version without that order, or a GGUF, does not";
  const std::string name = module.name + ".weight";
  derivations.tensors[name] = {
      .dtype = module.scale_type,
      .shape = {module.outputs, module.inputs},
      .make = [module = std::move(module), index = std::move(index)](RowRange rows) {
        return dense_rows(module, index, rows);
      }};
}

}  // namespace tandem::format
