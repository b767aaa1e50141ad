// MLX's CPU kernels as the oracle: rows do not see each other, and nothing is compiled at run time.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "host_op.h"

namespace probe {
namespace {

/// Whether f(rows) equals f of each row alone, bit for bit.
bool rows_are_independent(const array& x, const std::function<array(const array&)>& f) {
  const array whole = f(x);
  for (int row = 0; row < x.shape(0); ++row) {
    const array alone = f(mx::slice(x, {row, 0}, {row + 1, x.shape(1)}));
    const array part = mx::slice(whole, {row, 0}, {row + 1, whole.shape(1)});
    if (!mx::array_equal(alone, part).item<bool>()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("kernels: a row's result does not depend on the number of rows") {
  const array x = mx::random::normal({9, 128});
  const array w = mx::random::normal({96, 128});
  for (const int bits : {4, 8}) {
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
      const Arrays q = mx::quantize(mx::astype(w, dtype), 32, bits);
      CHECK(rows_are_independent(mx::astype(x, dtype), [&](const array& rows) {
        return mx::quantized_matmul(rows, q[0], q[1], q[2], true, 32, bits);
      }));
    }
  }
  const array weight = mx::random::normal({128});
  CHECK(rows_are_independent(
      x, [&](const array& rows) { return mx::fast::rms_norm(rows, weight, 1e-5F); }));
  CHECK(rows_are_independent(x, [](const array& rows) { return mx::softmax(rows, -1, true); }));
}

TEST_CASE("kernels: with compiling off, a compiled function runs and no compiler does") {
  const auto cache = std::filesystem::temp_directory_path() / "mlx";
  const auto count = [&] {
    size_t files = 0;
    if (!std::filesystem::exists(cache)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    return files;
  };
  const size_t before = count();
  mx::disable_compile();
  // An odd chain of operations, so that no earlier process can have left it in the cache.
  const auto fused = mx::compile([](const Arrays& in) {
    return Arrays{mx::tanh(mx::sin(in[0] * array(0.25F)) + mx::cos(in[0])) * in[0]};
  });
  const array x = mx::random::normal({100});
  const array plain = mx::tanh(mx::sin(x * array(0.25F)) + mx::cos(x)) * x;
  CHECK(mx::array_equal(fused({x})[0], plain).item<bool>());
  CHECK(count() == before);
  mx::enable_compile();
}

TEST_CASE("kernels: those for GPUs are refused by a build without one") {
  if (mx::is_available(mx::Device::gpu)) return;
  const auto use = [](const mx::fast::CustomKernelFunction& kernel) {
    mx::eval(kernel({array(1.0F)}, {{1}}, {mx::float32}, {1, 1, 1}, {1, 1, 1}, {}, {}, false, {}));
  };
  const char* source = "b[0] = a[0];";
  CHECK_THROWS(use(mx::fast::cuda_kernel("nothing", {"a"}, {"b"}, source)));
  CHECK_THROWS(use(mx::fast::metal_kernel("nothing", {"a"}, {"b"}, source)));
}

TEST_CASE("kernels: an operation without a gradient refuses to be differentiated, not silently") {
  const auto through = [](bool stopped) {
    return [stopped](const array& x) {
      const array y = host_op({1}, {x}, [](const Arrays& in, Arrays& out) {
        out[0].data<float>()[0] = in[0].data<float>()[0];
      });
      return mx::sum((stopped ? mx::stop_gradient(y) : y) * x);
    };
  };
  const array x = mx::full({1}, 3.0F);
  CHECK_THROWS(mx::grad(std::function<array(const array&)>(through(false)))(x));
  CHECK(mx::grad(std::function<array(const array&)>(through(true)))(x).item<float>() == 3.0F);
}

}  // namespace probe
