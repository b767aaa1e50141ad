#include "kernels/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include "kernels/code_layout.h"

namespace tandem::kernels {
namespace {

constexpr size_t kPanel = PackedMatrix::kPanel;
constexpr std::align_val_t kAlign{64};

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...)};
}

/// The slice with its default end replaced; an Error unless it is inside [0, size) and not empty.
Result<Slice> resolve(Slice slice, size_t size, const char* axis) {
  const size_t end = slice.end == SIZE_MAX ? size : slice.end;
  if (slice.begin >= end || end > size) {
    return invalid("[pack] a slice must hold some of {} {}, got [{}, {})", size, axis, slice.begin,
                   end);
  }
  return Slice{slice.begin, end};
}

uint32_t stored_bits_of(uint32_t bits) { return bits == 2 || bits == 4 ? bits : 8; }

/// Code `index` of a little-endian stream of `bits`-bit codes. Reads no byte beyond the code's
/// last.
uint32_t code_at(const uint8_t* row, size_t index, uint32_t bits) {
  const size_t bit = index * bits;
  uint32_t value = row[bit / 8];
  if (bit % 8 + bits > 8) value |= static_cast<uint32_t>(row[bit / 8 + 1]) << 8;
  return (value >> (bit % 8)) & ((1u << bits) - 1);
}

const char* name_of(ScalarType type) {
  switch (type) {
    case ScalarType::kF32:
      return "float32";
    case ScalarType::kF16:
      return "float16";
    case ScalarType::kBf16:
      return "bfloat16";
    case ScalarType::kE8m0:
      return "E8M0";
    case ScalarType::kE4m3:
      return "E4M3";
  }
  return "";
}

const char* name_of(CodeKind kind) {
  return kind == CodeKind::kAffine ? "" : kind == CodeKind::kE2m1 ? "E2M1 " : "E4M3 ";
}

std::string format_of(const QuantizedView& view) {
  return fmt::format("{}-bit {}codes in groups of {} with {} scales", view.bits, name_of(view.kind),
                     view.group, name_of(view.scale_type));
}

Status check_width(const QuantizedView& view) {
  if (view.cols % view.group == 0) return {};
  return invalid("[pack] columns must come in whole groups of {}, got {}", view.group, view.cols);
}

Error unsupported_format(const QuantizedView& view) {
  return {ErrorCode::kUnsupported,
          fmt::format("[pack] there is no product with {}", format_of(view))};
}

Status check_view(const QuantizedView& view) {
  const bool has_byte_scales = size_of(view.scale_type) == 1;
  if (has_byte_scales != (view.kind != CodeKind::kAffine)) return unsupported_format(view);
  if (has_byte_scales) {
    const bool fits = view.bits == (view.kind == CodeKind::kE2m1 ? 4 : 8) &&
                      (view.group == 32 || view.group == 16);
    if (!fits) return unsupported_format(view);
    return check_width(view);
  }
  if (view.bits < 2 || view.bits == 7 || view.bits > 8) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("[pack] codes must have 2, 3, 4, 5, 6 or 8 bits, got {}", view.bits)};
  }
  if (view.group != 32 && view.group != 64 && view.group != 128) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("[pack] groups must have 32, 64 or 128 columns, got {}", view.group)};
  }
  return check_width(view);
}

/// Four codes of 4 bits, each in a byte of its own.
uint32_t spread_nibbles(uint32_t four) {
  const uint32_t pairs = (four | four << 8) & 0x00FF00FFu;
  return (pairs | pairs << 4) & 0x0F0F0F0Fu;
}

/// Writes a group's codes of 4 or 8 bits, a word of a step at a time: eight or four columns.
void pack_words(const uint8_t* codes, const CodeLayout& layout, std::byte* panel, size_t o) {
  static_assert(std::endian::native == std::endian::little);
  const size_t steps = layout.group / layout.columns_per_step();
  std::byte* out = panel + layout.code_byte(0, o);
  for (size_t step = 0; step < steps; ++step, codes += 4, out += kPanel * 4) {
    uint32_t word;
    std::memcpy(&word, codes, 4);
    if (layout.bits == 4) word = spread_nibbles(word & 0xFFFFu) | spread_nibbles(word >> 16) << 4;
    std::memcpy(out, &word, 4);
  }
}

/// The same of any width.
void pack_codes(const QuantizedView& view,
                const uint8_t* row,
                size_t group,
                const CodeLayout& layout,
                std::byte* panel,
                size_t o) {
  auto* out = reinterpret_cast<uint8_t*>(panel);
  for (size_t c = 0; c < view.group; ++c) {
    const uint32_t code = code_at(row, group * view.group + c, view.bits);
    out[layout.code_byte(c, o)] |= static_cast<uint8_t>(code << layout.code_shift(c));
  }
}

CodeLayout layout_of(const QuantizedView& view) {
  return {stored_bits_of(view.bits), view.group, view.scale_type, view.kind};
}

bool same_format(const QuantizedView& a, const QuantizedView& b) {
  return a.bits == b.bits && a.group == b.group && a.scale_type == b.scale_type &&
         a.kind == b.kind && a.is_in_float32 == b.is_in_float32;
}

/// Writes one row of codes, scales and biases at output `o` of a panel.
void pack_row(const QuantizedView& view, size_t row, Slice cols, std::byte* panel, size_t o) {
  const CodeLayout layout = layout_of(view);
  const auto* codes = static_cast<const uint8_t*>(view.codes) + row * view.cols * view.bits / 8;
  const size_t size = size_of(view.scale_type);
  const size_t groups = view.cols / view.group;
  for (size_t g = cols.begin / view.group; g < cols.end / view.group; ++g) {
    const size_t from = (row * groups + g) * size;
    std::memcpy(panel + o * size, static_cast<const char*>(view.scales) + from, size);
    if (view.kind == CodeKind::kAffine)
      std::memcpy(panel + (kPanel + o) * size, static_cast<const char*>(view.biases) + from, size);
    if (view.bits == 4 || view.bits == 8)
      pack_words(codes + g * view.group * view.bits / 8, layout, panel, o);
    else
      pack_codes(view, codes, g, layout, panel, o);
    panel += layout.group_bytes();
  }
}

/// The same for a dense row.
void pack_row(const DenseView& view, size_t row, Slice cols, std::byte* panel, size_t o) {
  const size_t size = size_of(view.type);
  const size_t stride = view.row_stride == 0 ? view.cols : view.row_stride;
  const auto* from = static_cast<const std::byte*>(view.data) + (row * stride + cols.begin) * size;
  for (size_t c = 0; c < cols.end - cols.begin; ++c) {
    std::memcpy(panel + dense_offset(view.type, c, o) * size, from + c * size, size);
  }
}

/// The sliced width, equal in all views, and the sum of the sliced rows.
struct Shape {
  size_t outputs = 0;
  size_t inputs = 0;
};

template <class View>
Result<Shape> stacked_shape(std::span<const View> views) {
  Shape shape;
  if (views.empty()) return invalid("[pack] expected one matrix or more, got none");
  for (const View& view : views) {
    const auto rows = resolve(view.row_slice, view.rows, "rows");
    const auto cols = resolve(view.col_slice, view.cols, "columns");
    if (!rows) return rows.error();
    if (!cols) return cols.error();
    const size_t width = cols->end - cols->begin;
    if (shape.outputs > 0 && width != shape.inputs) {
      return invalid("[pack] stacked matrices must have {} columns as the first has, got {}",
                     shape.inputs, width);
    }
    shape.inputs = width;
    shape.outputs += rows->end - rows->begin;
  }
  return shape;
}

/// Writes the sliced rows of all views, one output after the other. The slices fit.
template <class View>
void pack_rows(std::span<const View> views, std::byte* panels, size_t panel_bytes) {
  size_t output = 0;
  for (const View& view : views) {
    const Slice rows = *resolve(view.row_slice, view.rows, "rows");
    const Slice cols = *resolve(view.col_slice, view.cols, "columns");
    for (size_t row = rows.begin; row < rows.end; ++row, ++output) {
      pack_row(view, row, cols, panels + output / kPanel * panel_bytes, output % kPanel);
    }
  }
}

}  // namespace

void PackedMatrix::Free::operator()(std::byte* data) const { ::operator delete(data, kAlign); }

void PackedMatrix::allocate() {
  data_.reset(static_cast<std::byte*>(::operator new(bytes(), kAlign)));
  std::memset(data_.get(), 0, bytes());
}

Result<PackedMatrix> PackedMatrix::from_quantized(std::span<const QuantizedView> views) {
  const auto shape = stacked_shape(views);
  if (!shape) return shape.error();
  const QuantizedView& first = views[0];
  for (const QuantizedView& view : views) {
    if (const Status status = check_view(view); !status) return status.error();
    if (!same_format(view, first)) {
      return invalid("[pack] stacked matrices must have one format, got {} and {}",
                     format_of(first), format_of(view));
    }
    const Slice cols = *resolve(view.col_slice, view.cols, "columns");
    if (cols.begin % view.group != 0 || cols.end % view.group != 0) {
      return invalid("[pack] a slice of columns must hold whole groups of {}, got [{}, {})",
                     view.group, cols.begin, cols.end);
    }
  }
  const CodeLayout layout = layout_of(first);
  PackedMatrix w;
  w.outputs_ = shape->outputs;
  w.inputs_ = shape->inputs;
  w.bits_ = layout.bits;
  w.group_ = layout.group;
  w.type_ = layout.type;
  w.kind_ = layout.kind;
  w.takes_row_codes_ = first.kind == CodeKind::kAffine
                           ? first.scale_type != ScalarType::kF32
                           : first.kind == CodeKind::kE2m1 && !first.is_in_float32;
  w.panel_bytes_ = w.inputs_ / layout.group * layout.group_bytes();
  w.allocate();
  pack_rows(views, w.data_.get(), w.panel_bytes_);
  return w;
}

Result<PackedMatrix> PackedMatrix::from_dense(std::span<const DenseView> views) {
  const auto shape = stacked_shape(views);
  if (!shape) return shape.error();
  for (const DenseView& view : views) {
    if (view.type != views[0].type) {
      return invalid("[pack] stacked matrices must have one type, got {} and {}",
                     name_of(views[0].type), name_of(view.type));
    }
  }
  PackedMatrix w;
  w.outputs_ = shape->outputs;
  w.inputs_ = shape->inputs;
  w.type_ = views[0].type;
  const size_t columns = w.type_ == ScalarType::kBf16 ? (w.inputs_ + 1) / 2 * 2 : w.inputs_;
  w.panel_bytes_ = columns * kPanel * size_of(w.type_);
  w.allocate();
  pack_rows(views, w.data_.get(), w.panel_bytes_);
  return w;
}

}  // namespace tandem::kernels
