#include "tensor/pool.h"

#include <cstring>

#include "kernels/kv_write.h"
#include "kernels/page_copy.h"
#include "tensor/pool_gpu.h"

namespace tandem::tensor {
namespace {

bool on_cpu() { return mx::default_device() == mx::Device::cpu; }

array new_memory(const mx::Shape& shape, mx::Dtype dtype) {
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
                [slots = step.slots()](const auto& in, auto& out) {
                  write_rows(in[0], in[2], slots);
                  write_rows(in[1], in[3], slots);
                  put_order(out[0]);
                });
}

/// The order after a write that the evaluator has run in its place: the one before it.
void pass_order(array& out, const array& before) {
  if (out.data_shared_ptr())
    put_order(out);
  else
    out.copy_shared_buffer(before);
}

array write_fast(
    const Pool& pool, const array& k, const array& v, const Step& step, const Context& context) {
  return cpu_op("PoolWrite", {1}, mx::uint32, {pool.keys, pool.values, k, v, pool.order},
                [&step, workers = context.workers](const auto& in, auto& out) -> CpuCall {
                  pass_order(out[0], in[4]);
                  const kernels::KvWriteArgs args = {
                      .k = in[2].template data<float>(),
                      .v = in[3].template data<float>(),
                      .k_stride = row_stride(in[2]),
                      .v_stride = row_stride(in[3]),
                      .tokens = step.tokens(),
                      .kv_heads = static_cast<size_t>(in[0].shape(2)),
                      .head_dim = static_cast<size_t>(in[0].shape(3)),
                      .k_pool = reinterpret_cast<float*>(memory(in[0])),
                      .v_pool = reinterpret_cast<float*>(memory(in[1]))};
                  return [&step, workers, args] {
                    kernels::KvWriteArgs now = args;
                    now.slots = step.slots().data();
                    kernels::kv_write(*workers, now);
                  };
                });
}

}  // namespace

Pool make_pool(const PoolShape& s, mx::Dtype dtype) {
  const mx::Shape shape = {static_cast<int>(s.pages), static_cast<int>(s.page_tokens),
                           static_cast<int>(s.kv_heads), static_cast<int>(s.head_dim)};
  array order = mx::zeros({1}, mx::uint32);
  mx::eval(order);
  return {new_memory(shape, dtype), new_memory(shape, dtype), order};
}

void write(Pool& pool, const array& k, const array& v, const Step& step, const Context& context) {
  if (!on_cpu())
    pool.order = write_on_gpu(pool, k, v, step.slot_array());
  else
    pool.order =
        context.is_fast() ? write_fast(pool, k, v, step, context) : write_plain(pool, k, v, step);
}

void copy_pages(Pool& pool,
                std::span<const uint32_t> from,
                std::span<const uint32_t> to,
                const Context&) {
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
