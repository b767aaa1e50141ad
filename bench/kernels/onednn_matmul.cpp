#include "kernels/onednn_matmul.h"

#ifdef BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>

namespace tandem::bench {

std::function<void()> onednn_matmul(size_t threads,
                                    size_t rows,
                                    size_t outputs,
                                    size_t inputs,
                                    std::vector<float>& x,
                                    std::vector<float>& y) {
  using dnnl::memory;
  omp_set_num_threads(static_cast<int>(threads));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto m = static_cast<long>(rows), n = static_cast<long>(outputs),
             k = static_cast<long>(inputs);
  const auto type = memory::data_type::f32;
  const memory::desc x_desc({m, k}, type, memory::format_tag::ab);
  const memory::desc y_desc({m, n}, type, memory::format_tag::ab);
  const memory::desc any({k, n}, type, memory::format_tag::any);
  const dnnl::matmul::primitive_desc choice({x_desc, any, y_desc}, engine);
  std::vector<float> weights(outputs * inputs, 0.5f);
  memory plain({{k, n}, type, memory::format_tag::ba}, engine, weights.data());
  memory packed(choice.weights_desc(), engine);
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  const dnnl::matmul product(choice);
  memory from(x_desc, engine, x.data()), to(y_desc, engine, y.data());
  return [=]() mutable {
    product.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, to}});
    stream.wait();
  };
}

}  // namespace tandem::bench
#else

namespace tandem::bench {

std::function<void()> onednn_matmul(
    size_t, size_t, size_t, size_t, std::vector<float>&, std::vector<float>&) {
  return {};
}

}  // namespace tandem::bench
#endif
