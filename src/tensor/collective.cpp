#include "tensor/collective.h"

#include <algorithm>
#include <cstring>

#include "tensor/host.h"

namespace tandem::tensor {
namespace {

void check(const Status& status) {
  if (!status) throw CommFailure(status.error());
}

comm::Dtype comm_dtype(mx::Dtype dtype) {
  if (dtype == mx::float32) return comm::Dtype::kFloat32;
  if (dtype == mx::bfloat16) return comm::Dtype::kBfloat16;
  if (dtype == mx::float16) return comm::Dtype::kFloat16;
  throw std::invalid_argument("[all_sum] expected a floating-point array");
}

/// Copies `rows` rows of `width` floats into columns [at, at + width) of a matrix.
void put_columns(
    float* matrix, size_t stride, size_t at, const float* part, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; ++r)
    std::memcpy(matrix + r * stride + at, part + r * width, width * sizeof(float));
}

/// Fills `to` [rows, all columns] from this rank's part and the others'.
void receive_columns(comm::Transport& transport,
                     const std::vector<topology::Range>& columns,
                     const float* own,
                     size_t rows,
                     float* to) {
  const size_t stride = columns.back().end;
  put_columns(to, stride, columns[0].begin, own, rows, columns[0].size());
  std::vector<float> part;
  for (uint32_t r = 1; r < columns.size(); ++r) {
    part.resize(rows * columns[r].size());
    if (part.empty()) continue;
    check(transport.recv(std::as_writable_bytes(std::span(part)), r));
    put_columns(to, stride, columns[r].begin, part.data(), rows, columns[r].size());
  }
}

}  // namespace

void Collective::set_transport(comm::Transport* transport) {
  TANDEM_CHECK(transport == nullptr || (transport->rank() == rank_ && transport->size() == size_),
               "the transport's place in its group does not fit the model's part");
  transport_ = transport;
}

comm::Transport& Collective::transport() const {
  if (transport_ == nullptr)
    throw CommFailure({ErrorCode::kPeerLost, "no transport: the epoch has not begun"});
  return *transport_;
}

array Collective::all_sum(const array& x) const {
  if (group_) return mx::distributed::all_sum(x, group_);
  const array in = mx::default_device() == mx::Device::cpu ? x : mx::contiguous(x);
  const auto bind = [this](const std::vector<array>& inputs,
                           std::vector<array>& outputs) -> CpuCall {
    const array& from = inputs[0];
    if (!from.flags().row_contiguous)
      throw std::invalid_argument("[all_sum] expected a contiguous array");
    allocate(outputs[0]);
    return [this, from = on_host<std::byte>(from), data = to_write<std::byte>(outputs[0]),
            bytes = from.nbytes(), size = from.size(), dtype = from.dtype()] {
      std::memcpy(data, from, bytes);
      check(transport().all_sum(data, size, comm_dtype(dtype)));
    };
  };
  return cpu_op("AllSum", in.shape(), in.dtype(), {in}, bind);
}

array Collective::gather_columns(const array& x,
                                 const std::vector<topology::Range>& columns) const {
  if (group_) return gather_by_group(x, columns);
  const int width = rank_ == 0 ? static_cast<int>(columns.back().end) : 0;
  const auto bind = [this, columns = columns](const std::vector<array>& inputs,
                                              std::vector<array>& outputs) -> CpuCall {
    allocate(outputs[0]);
    const std::span own(on_host<float>(inputs[0]), inputs[0].size());
    if (rank_ != 0)
      return [this, own] {
        if (!own.empty()) check(transport().send(std::as_bytes(own), 0));
      };
    return [this, columns, own, rows = static_cast<size_t>(inputs[0].shape(0)),
            to = to_write<float>(outputs[0])] {
      receive_columns(transport(), columns, own.data(), rows, to);
    };
  };
  return cpu_op("GatherColumns", {x.shape(0), width}, mx::float32, {x}, bind);
}

/// Some backends gather equal parts only, and have no send: parts are padded to the widest.
array Collective::gather_by_group(const array& x,
                                  const std::vector<topology::Range>& columns) const {
  int widest = 0;
  for (const topology::Range& c : columns) widest = std::max(widest, static_cast<int>(c.size()));
  const int rows = x.shape(0);
  const array padded = mx::pad(x, {{0, 0}, {0, widest - x.shape(1)}});
  const array all = mx::distributed::all_gather(mx::contiguous(padded), group_);
  if (rank_ != 0) return mx::depends({mx::zeros({rows, 0}, mx::float32)}, {all}).front();
  std::vector<array> parts;
  for (uint32_t r = 0; r < columns.size(); ++r) {
    const int top = static_cast<int>(r) * rows;
    parts.push_back(mx::slice(all, {top, 0}, {top + rows, static_cast<int>(columns[r].size())}));
  }
  return mx::concatenate(parts, 1);
}

}  // namespace tandem::tensor
