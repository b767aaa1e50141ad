#include "tensor/pool.h"

#include <cstring>

#include "tensor/pool_gpu.h"

namespace tandem::tensor {
namespace {

/// Where a CPU writer puts its rows. The nodes' inputs are const by convention only: nobody else
/// owns a pool.
std::byte* memory(const array& pool) { return const_cast<std::byte*>(pool.data<std::byte>()); }

void put_order(array& out) {
  allocate(out);
  *out.data<uint32_t>() = 0;
}

/// Any type, for the plain path.
void write_rows(const array& pool, const array& rows, const std::vector<uint32_t>& slots) {
  const size_t bytes = rows.nbytes() / slots.size();
  for (size_t t = 0; t < slots.size(); ++t)
    std::memcpy(memory(pool) + slots[t] * bytes, rows.data<std::byte>() + t * bytes, bytes);
}

array write_plain(const Pool& pool, const array& k, const array& v, const Step& step) {
  const array keys = mx::contiguous(mx::astype(k, pool.keys.dtype()));
  const array values = mx::contiguous(mx::astype(v, pool.values.dtype()));
  return cpu_op("PoolWrite", {1}, mx::uint32, {pool.keys, pool.values, keys, values, pool.order},
                [slots = step.slots(pool.group)](const auto& in, auto& out) {
                  write_rows(in[0], in[2], slots);
                  write_rows(in[1], in[3], slots);
                  put_order(out[0]);
                });
}

}  // namespace

bool on_cpu() { return mx::default_device() == mx::Device::cpu; }

array pool_memory(const mx::Shape& shape, mx::Dtype dtype) {
  if (!on_cpu()) {
    array zeros = mx::zeros(shape, dtype);
    mx::eval(zeros);
    return zeros;
  }
  size_t bytes = mx::size_of(dtype);
  for (const int n : shape) bytes *= static_cast<size_t>(n);
  return array(mx::allocator::malloc(bytes), shape,
               dtype);  // the system gives pages when they are touched
}

Pool make_pool(const PoolShape& s, mx::Dtype dtype, Path path) {
  const int pages = static_cast<int>(s.pages), tokens = static_cast<int>(s.page_tokens),
            heads = static_cast<int>(s.kv_heads), dim = static_cast<int>(s.head_dim);
  const int value_dim = s.latent_dim != 0 ? dim : static_cast<int>(s.values());
  const bool is_fast = path == Path::kFast;
  const mx::Shape columns =
      is_fast ? mx::Shape{pages, heads, dim, tokens} : mx::Shape{pages, tokens, heads, dim};
  const mx::Shape rows = is_fast ? mx::Shape{pages, heads, tokens, value_dim}
                                 : mx::Shape{pages, tokens, heads, value_dim};
  array order = mx::zeros({1}, mx::uint32);
  mx::eval(order);
  const bool has_rows_alone = s.latent_dim != 0;
  const array keys = pool_memory(has_rows_alone ? rows : columns, dtype);
  const bool has_values = s.has_values && !has_rows_alone;
  return {.keys = keys,
          .values = has_values ? pool_memory(rows, dtype) : keys,
          .order = order,
          .shape = s};
}

void write(Pool& pool, const array& k, const array& v, const Step& step) {
  const array& values = pool.has_values() ? v : k;  // else to the same place
  pool.order = on_cpu() ? write_plain(pool, k, values, step)
                        : write_on_gpu(pool, k, values, step.slot_array(pool.group));
}

void copy_pages(Pool& pool, std::span<const uint32_t> from, std::span<const uint32_t> to) {
  if (!on_cpu()) {
    pool.order = copy_on_gpu(pool, from, to);
    return;
  }
  pool.order = cpu_op("PageCopy", {1}, mx::uint32, {pool.keys, pool.values, pool.order},
                      [from = std::vector(from.begin(), from.end()),
                       to = std::vector(to.begin(), to.end())](const auto& in, auto& out) {
                        for (const array& content : {in[0], in[1]}) {
                          const size_t bytes =
                              content.nbytes() / static_cast<size_t>(content.shape(0));
                          std::byte* pages = memory(content);
                          for (size_t i = 0; i < from.size(); ++i)
                            std::memcpy(pages + to[i] * bytes, pages + from[i] * bytes, bytes);
                        }
                        put_order(out[0]);
                      });
}

array ordered(const array& pages, const array& order) { return mx::add(pages, order); }

}  // namespace tandem::tensor
