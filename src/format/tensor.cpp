#include "format/tensor.h"

#include <array>
#include <utility>

namespace tandem::format {
namespace {

struct Entry {
  Dtype dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array<Entry, 16> kEntries{{
    {Dtype::kF32, "F32", 4},
    {Dtype::kF16, "F16", 2},
    {Dtype::kBF16, "BF16", 2},
    {Dtype::kF64, "F64", 8},
    {Dtype::kI8, "I8", 1},
    {Dtype::kU8, "U8", 1},
    {Dtype::kI16, "I16", 2},
    {Dtype::kU16, "U16", 2},
    {Dtype::kI32, "I32", 4},
    {Dtype::kU32, "U32", 4},
    {Dtype::kI64, "I64", 8},
    {Dtype::kU64, "U64", 8},
    {Dtype::kBool, "BOOL", 1},
    {Dtype::kF8E4M3, "F8_E4M3", 1},
    {Dtype::kF8E5M2, "F8_E5M2", 1},
    {Dtype::kF8E8M0, "F8_E8M0", 1},
}};

constexpr std::array<std::pair<QuantMode, std::string_view>, 4> kModes{
    {{QuantMode::kAffine, "affine"},
     {QuantMode::kMxfp4, "mxfp4"},
     {QuantMode::kMxfp8, "mxfp8"},
     {QuantMode::kNvfp4, "nvfp4"}}};

}  // namespace

size_t size_of(Dtype dtype) { return kEntries[static_cast<size_t>(dtype)].size; }

std::string_view name(Dtype dtype) { return kEntries[static_cast<size_t>(dtype)].name; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::string_view name(QuantMode mode) { return kModes[static_cast<size_t>(mode)].second; }

std::optional<QuantMode> quant_mode_from_name(std::string_view name) {
  for (const auto& [mode, its] : kModes) {
    if (its == name) return mode;
  }
  return std::nullopt;
}

}  // namespace tandem::format
