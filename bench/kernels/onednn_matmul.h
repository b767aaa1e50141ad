// oneDNN's float32 matrix product, to compare with.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tandem::bench {

/// A call that computes y[rows, outputs] = x[rows, inputs] W^T with weights in oneDNN's preferred
/// layout; empty when oneDNN was not there at build time. x and y must outlive it.
std::function<void()> onednn_matmul(size_t threads,
                                    size_t rows,
                                    size_t outputs,
                                    size_t inputs,
                                    std::vector<float>& x,
                                    std::vector<float>& y);

}  // namespace tandem::bench
