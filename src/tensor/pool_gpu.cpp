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
  const size_t width = size_t(WIDTH);
  if (i >= size_t(slots[0]) * width) return;
  const size_t token = i / width;
  const size_t at = size_t(slots[1 + token]) * width + i % width;
  const_cast<T*>(keys)[at] = k[i];
  const_cast<T*>(values)[at] = v[i];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kMetalWrite = R"(
  const size_t i = thread_position_in_grid.x;
  const size_t width = size_t(WIDTH);
  if (i >= size_t(slots[0]) * width) return;
  const size_t token = i / width;
  const size_t at = size_t(slots[1 + token]) * width + i % width;
  ((device T*)keys)[at] = k[i];
  ((device T*)values)[at] = v[i];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kCudaCopy = R"(
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const size_t width = size_t(WIDTH);
  if (i >= size_t(pairs[0]) * width) return;
  const size_t from = size_t(pairs[1 + 2 * (i / width)]) * width + i % width;
  const size_t to = size_t(pairs[2 + 2 * (i / width)]) * width + i % width;
  const_cast<T*>(keys)[to] = keys[from];
  const_cast<T*>(values)[to] = values[from];
  if (i == 0) next[0] = 0;
)";

constexpr const char* kMetalCopy = R"(
  const size_t i = thread_position_in_grid.x;
  const size_t width = size_t(WIDTH);
  if (i >= size_t(pairs[0]) * width) return;
  const size_t from = size_t(pairs[1 + 2 * (i / width)]) * width + i % width;
  const size_t to = size_t(pairs[2 + 2 * (i / width)]) * width + i % width;
  ((device T*)keys)[to] = keys[from];
  ((device T*)values)[to] = values[from];
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

}  // namespace

array write_on_gpu(const Pool& pool, const array& k, const array& v, const array& slots) {
  static const auto kernel = make_kernel(
      "tandem_pool_write", {"keys", "values", "k", "v", "slots", "order"}, kCudaWrite, kMetalWrite);
  const mx::Dtype dtype = pool.keys.dtype();
  const array keys = mx::contiguous(mx::astype(k, dtype));
  const array values = mx::contiguous(mx::astype(v, dtype));
  return run(kernel, {pool.keys, pool.values, keys, values, slots, pool.order}, k.size(),
             {{"T", dtype}, {"WIDTH", k.shape(1)}});
}

array copy_on_gpu(const Pool& pool, std::span<const uint32_t> from, std::span<const uint32_t> to) {
  static const auto kernel =
      make_kernel("tandem_page_copy", {"keys", "values", "pairs", "order"}, kCudaCopy, kMetalCopy);
  std::vector<uint32_t> pairs = {static_cast<uint32_t>(from.size())};
  for (size_t i = 0; i < from.size(); ++i) pairs.insert(pairs.end(), {from[i], to[i]});
  const array list = from_host(pairs);
  const int width = pool.keys.shape(1) * pool.keys.shape(2) * pool.keys.shape(3);
  return run(kernel, {pool.keys, pool.values, list, pool.order},
             from.size() * static_cast<size_t>(width),
             {{"T", pool.keys.dtype()}, {"WIDTH", width}});
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
