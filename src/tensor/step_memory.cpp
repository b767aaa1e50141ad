#include "tensor/step_memory.h"

#include <algorithm>
#include <utility>

namespace tandem::tensor {
namespace {

thread_local StepMemory* this_threads = nullptr;

}  // namespace

StepMemory::Scope::Scope(StepMemory& memory) : before_(std::exchange(this_threads, &memory)) {}

StepMemory::Scope::~Scope() { this_threads = before_; }

StepMemory* StepMemory::current() { return this_threads; }

void StepMemory::give(array& out) {
  const size_t size = std::max<size_t>(out.nbytes(), 1);
  Block* best = nullptr;
  for (Block& block : blocks_)
    if (block.size >= size && (best == nullptr || block.size < best->size) && block.is_free())
      best = &block;
  if (best == nullptr) best = &add_block(size);
  mx::Strides strides(static_cast<size_t>(out.ndim()), 1);
  for (auto axis = static_cast<int>(out.ndim()) - 2; axis >= 0; --axis)
    strides[static_cast<size_t>(axis)] =
        strides[static_cast<size_t>(axis) + 1] * out.shape(axis + 1);
  const bool is_line = out.ndim() < 2 || out.size() == static_cast<size_t>(out.shape(-1));
  const array::Flags flags = {
      .contiguous = true, .row_contiguous = true, .col_contiguous = is_line};
  const auto offset = static_cast<int64_t>(best->first / out.itemsize());
  out.copy_shared_buffer(best->bytes, strides, flags, out.size(), offset);
}

StepMemory::Block& StepMemory::add_block(size_t size) {
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  const size_t whole = rounded + kAlignment;
  // Lines, since an axis ends at 2^31.
  const mx::Shape shape = {static_cast<int>(whole / kAlignment), static_cast<int>(kAlignment)};
  array bytes(mx::allocator::malloc(whole), shape, mx::uint8);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data<std::byte>());
  const size_t first = (kAlignment - address % kAlignment) % kAlignment;
  return blocks_.emplace_back(Block{.bytes = std::move(bytes), .first = first, .size = rounded});
}

}  // namespace tandem::tensor
