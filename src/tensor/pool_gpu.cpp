#include "tensor/pool_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "tensor/host.h"

namespace tandem::tensor {
namespace {

// The kernels see inputs as pointers to const and cast that away: a pool is never an output. One
// thread moves one element of keys and of values. `order` is an input for its buffer alone: a
// kernel starts when the one that wrote it has ended.
constexpr const char* kCudaWrite = R"(
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const size_t tokens = size_t(slots[0]), width = size_t(WIDTH), v_width = size_t(V_WIDTH);
  if (i < tokens * width)
    const_cast<T*>(keys)[size_t(slots[1 + i / width]) * width + i % width] = k[i];
  if (i < tokens * v_width)
    const_cast<T*>(values)[size_t(slots[1 + i / v_width]) * v_width + i % v_width] = v[i];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kMetalWrite = R"(
  const size_t i = thread_position_in_grid.x;
  const size_t tokens = size_t(slots[0]), width = size_t(WIDTH), v_width = size_t(V_WIDTH);
  if (i < tokens * width)
    ((device T*)keys)[size_t(slots[1 + i / width]) * width + i % width] = k[i];
  if (i < tokens * v_width)
    ((device T*)values)[size_t(slots[1 + i / v_width]) * v_width + i % v_width] = v[i];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kCudaCopy = R"(
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const size_t count = size_t(pairs[0]), width = size_t(WIDTH), v_width = size_t(V_WIDTH);
  if (i < count * width) {
    const size_t pair = 1 + 2 * (i / width), at = i % width;
    const_cast<T*>(keys)[size_t(pairs[pair + 1]) * width + at] =
        keys[size_t(pairs[pair]) * width + at];
  }
  if (i < count * v_width) {
    const size_t pair = 1 + 2 * (i / v_width), at = i % v_width;
    const_cast<T*>(values)[size_t(pairs[pair + 1]) * v_width + at] =
        values[size_t(pairs[pair]) * v_width + at];
  }
  if (i == 0) next[0] = 0;
)";

constexpr const char* kMetalCopy = R"(
  const size_t i = thread_position_in_grid.x;
  const size_t count = size_t(pairs[0]), width = size_t(WIDTH), v_width = size_t(V_WIDTH);
  if (i < count * width) {
    const size_t pair = 1 + 2 * (i / width), at = i % width;
    ((device T*)keys)[size_t(pairs[pair + 1]) * width + at] =
        keys[size_t(pairs[pair]) * width + at];
  }
  if (i < count * v_width) {
    const size_t pair = 1 + 2 * (i / v_width), at = i % v_width;
    ((device T*)values)[size_t(pairs[pair + 1]) * v_width + at] =
        values[size_t(pairs[pair]) * v_width + at];
  }
  if (i == 0) next[0] = 0;
)";

constexpr const char* kCudaStore = R"(
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const size_t part = size_t(PART);
  if (i >= size_t(slots[0]) * part) return;
  const size_t at = size_t(slots[1 + i / part]) * size_t(FLOATS) + size_t(OFFSET) + i % part;
  const_cast<float*>(states)[at] = values[i];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kMetalStore = R"(
  const size_t i = thread_position_in_grid.x;
  const size_t part = size_t(PART);
  if (i >= size_t(slots[0]) * part) return;
  const size_t at = size_t(slots[1 + i / part]) * size_t(FLOATS) + size_t(OFFSET) + i % part;
  ((device float*)states)[at] = values[i];
  if (i == 0) next[0] = 0;
)";

/// MLX keeps compiled kernels on disk by their name alone, so the name tells the source.
mx::fast::CustomKernelFunction make_kernel(std::string_view name,
                                           const std::vector<std::string>& inputs,
                                           const char* cuda,
                                           const char* metal) {
  const bool is_cuda = mx::cu::is_available();
  const char* source = is_cuda ? cuda : metal;
  const std::string full =
      fmt::format("{}_{:016x}", name, std::hash<std::string_view>()(std::string_view(source)));
  return is_cuda ? mx::fast::cuda_kernel(full, inputs, {"next"}, source, "", false)
                 : mx::fast::metal_kernel(full, inputs, {"next"}, source, "", false);
}

array run(const mx::fast::CustomKernelFunction& kernel,
          const std::vector<array>& inputs,
          size_t threads,
          std::vector<std::pair<std::string, mx::fast::TemplateArg>> arguments) {
  const int block = 256;
  const int padded = static_cast<int>((threads + block - 1) / block) * block;
  return kernel(inputs, {{1}}, {mx::uint32}, {padded, 1, 1}, {block, 1, 1}, std::move(arguments),
                std::nullopt, false, {})
      .front();
}

/// Numbers in one page of a pool's keys or values.
int page_size(const array& content) {
  return content.shape(1) * content.shape(2) * content.shape(3);
}

}  // namespace

array write_on_gpu(const Pool& pool, const array& k, const array& v, const array& slots) {
  static const auto kernel = make_kernel(
      "tandem_pool_write", {"keys", "values", "k", "v", "slots", "order"}, kCudaWrite, kMetalWrite);
  const mx::Dtype dtype = pool.keys.dtype();
  const array keys = mx::contiguous(mx::astype(k, dtype));
  const array values = mx::contiguous(mx::astype(v, dtype));
  return run(kernel, {pool.keys, pool.values, keys, values, slots, pool.order},
             std::max(k.size(), v.size()),
             {{"T", dtype}, {"WIDTH", k.shape(1)}, {"V_WIDTH", v.shape(1)}});
}

array copy_on_gpu(const Pool& pool, std::span<const uint32_t> from, std::span<const uint32_t> to) {
  static const auto kernel =
      make_kernel("tandem_page_copy", {"keys", "values", "pairs", "order"}, kCudaCopy, kMetalCopy);
  std::vector<uint32_t> pairs = {static_cast<uint32_t>(from.size())};
  for (size_t i = 0; i < from.size(); ++i) pairs.insert(pairs.end(), {from[i], to[i]});
  const array list = from_host(pairs);
  const int width = page_size(pool.keys), v_width = page_size(pool.values);
  return run(kernel, {pool.keys, pool.values, list, pool.order},
             from.size() * static_cast<size_t>(std::max(width, v_width)),
             {{"T", pool.keys.dtype()}, {"WIDTH", width}, {"V_WIDTH", v_width}});
}

array store_on_gpu(const StatePool& pool, StatePart part, const array& values, const array& slots) {
  static const auto kernel = make_kernel(
      "tandem_state_store", {"states", "values", "slots", "order"}, kCudaStore, kMetalStore);
  return run(kernel, {pool.states, values, slots, pool.order}, values.size(),
             {{"PART", static_cast<int>(part.floats)},
              {"OFFSET", static_cast<int>(part.offset)},
              {"FLOATS", static_cast<int>(pool.floats())}});
}

}  // namespace tandem::tensor
