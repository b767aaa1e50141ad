// A primitive whose work is a C++ function over host memory, for the probes.
#pragma once

#include <mlx/backend/cpu/encoder.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace probe {

namespace mx = mlx::core;
using mx::array;

using Arrays = std::vector<array>;
using Work = std::function<void(const Arrays& in, Arrays& out)>;

class HostOp final : public mx::Primitive {
 public:
  /// `work` runs on the stream's thread, `at_eval` (optional) inside eval_cpu before that.
  HostOp(mx::Stream stream, Work work, std::function<void(const Arrays& in)> at_eval = {})
      : Primitive(stream), work_(std::move(work)), at_eval_(std::move(at_eval)) {}

  void eval_cpu(const Arrays& inputs, Arrays& outputs) override {
    if (at_eval_) at_eval_(inputs);
    for (array& out : outputs) out.set_data(mx::allocator::malloc(out.nbytes()));
    mx::cpu::get_command_encoder(stream()).dispatch(
        [work = work_, in = weak(inputs), out = weak(outputs)]() mutable { work(in, out); });
  }
  void eval_gpu(const Arrays&, Arrays&) override { throw std::runtime_error("no GPU"); }
  const char* name() const override { return "HostOp"; }

  /// On the calling thread, without the stream.
  void run(const Arrays& inputs, Arrays& outputs) {
    for (array& out : outputs) out.set_data(mx::allocator::malloc(out.nbytes()));
    work_(inputs, outputs);
  }

 private:
  static Arrays weak(const Arrays& arrays) {
    Arrays copies;
    for (const array& a : arrays) copies.push_back(array::unsafe_weak_copy(a));
    return copies;
  }

  Work work_;
  std::function<void(const Arrays& in)> at_eval_;
};

inline mx::Stream cpu() { return mx::default_stream(mx::Device::cpu); }

/// One output.
inline array host_op(mx::Shape shape,
                     Arrays inputs,
                     Work work,
                     std::function<void(const Arrays& in)> at_eval = {}) {
  return {std::move(shape), mx::float32,
          std::make_shared<HostOp>(cpu(), std::move(work), std::move(at_eval)), std::move(inputs)};
}

/// Evaluated zeros.
inline array zeros(mx::Shape shape) {
  array a = mx::zeros(std::move(shape));
  mx::eval(a);
  return a;
}

}  // namespace probe
