#include "tensor/group.h"

#include <fmt/format.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/distributed/distributed_impl.h>

#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "tensor/collective.h"

namespace tandem::tensor {
namespace {

using mx::array;

comm::Dtype sum_dtype(mx::Dtype dtype) {
  if (dtype == mx::float32) return comm::Dtype::kFloat32;
  if (dtype == mx::bfloat16) return comm::Dtype::kBfloat16;
  if (dtype == mx::float16) return comm::Dtype::kFloat16;
  throw std::invalid_argument(
      "[group.all_sum] expected float32, bfloat16 or float16; other types are not summed");
}

/// The transport takes one call at a time; tasks of two streams may meet here.
struct Shared {
  std::shared_ptr<comm::Transport> transport;
  Status status;
  std::mutex mutex;
};

template <class Call>
void run(const std::shared_ptr<Shared>& shared, Call&& call) {
  const std::lock_guard lock(shared->mutex);
  if (const Status status = call(*shared->transport); !status) {
    if (shared->status) shared->status = status;
    throw CommFailure(status.error());
  }
}

std::span<std::byte> bytes_of(array& a) { return {a.data<std::byte>(), a.nbytes()}; }
std::span<const std::byte> bytes_of(const array& a) { return {a.data<std::byte>(), a.nbytes()}; }

class TransportGroup final : public mx::distributed::detail::GroupImpl {
 public:
  explicit TransportGroup(std::shared_ptr<comm::Transport> transport)
      : shared_(std::make_shared<Shared>()) {
    shared_->transport = std::move(transport);
  }

  mx::Stream communication_stream(mx::StreamOrDevice s) override {
    return mx::to_stream(s, mx::Device::cpu);
  }

  Status status() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->status;
  }

  int rank() override { return static_cast<int>(shared_->transport->rank()); }
  int size() override { return static_cast<int>(shared_->transport->size()); }

  std::shared_ptr<GroupImpl> split(int color, int key) override {
    const std::lock_guard lock(shared_->mutex);
    auto part = shared_->transport->split(color, key < 0 ? rank() : key);
    if (!part) throw CommFailure(part.error());
    return std::make_shared<TransportGroup>(*std::move(part));
  }

  // Tasks copy what they need: MLX may destroy the primitive, and with it the last handle to this
  // group, before they run. MLX keeps the buffers.
  void all_sum(const array& in, array& out, mx::Stream stream) override {
    const comm::Dtype dtype = sum_dtype(in.dtype());
    dispatch(stream, [shared = shared_, dtype, from = bytes_of(in), to = bytes_of(out)] {
      if (from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
      const size_t count = to.size() / (dtype == comm::Dtype::kFloat32 ? 4 : 2);
      run(shared, [&](comm::Transport& t) { return t.all_sum(to.data(), count, dtype); });
    });
  }

  void all_gather(const array& in, array& out, mx::Stream stream) override {
    dispatch(stream, [shared = shared_, from = bytes_of(in), to = bytes_of(out)] {
      run(shared, [&](comm::Transport& t) {
        const std::vector<size_t> sizes(t.size(), from.size());
        return t.all_gather(from, sizes, to.data());
      });
    });
  }

  void send(const array& in, int to, mx::Stream stream) override {
    dispatch(stream, [shared = shared_, from = bytes_of(in), to] {
      run(shared, [&](comm::Transport& t) { return t.send(from, static_cast<uint32_t>(to)); });
    });
  }

  void recv(array& out, int from, mx::Stream stream) override {
    dispatch(stream, [shared = shared_, to = bytes_of(out), from] {
      run(shared, [&](comm::Transport& t) { return t.recv(to, static_cast<uint32_t>(from)); });
    });
  }

  void sum_scatter(const array& in, array& out, mx::Stream stream) override {
    if (in.dtype() != mx::float32) {
      throw std::invalid_argument("[group.sum_scatter] only float32 is summed by rows");
    }
    dispatch(stream, [shared = shared_, from = in.data<float>(), to = out.data<float>(),
                      count = out.size()] {
      run(shared, [&](comm::Transport& t) {
        std::vector<size_t> begins(size_t{t.size()} + 1);
        std::iota(begins.begin(), begins.end(), size_t{0});
        return t.reduce_scatter(from, count, begins, to);
      });
    });
  }

  void all_max(const array&, array&, mx::Stream) override { refuse("all_max"); }
  void all_min(const array&, array&, mx::Stream) override { refuse("all_min"); }

 private:
  template <class Task>
  static void dispatch(mx::Stream stream, Task&& task) {
    mx::cpu::get_command_encoder(stream).dispatch(std::forward<Task>(task));
  }

  [[noreturn]] static void refuse(const char* what) {
    throw std::invalid_argument(
        fmt::format("[group.{}] not supported: gather the values and reduce them locally", what));
  }

  std::shared_ptr<Shared> shared_;  // with the tasks in flight
};

}  // namespace

mx::distributed::Group make_group(std::shared_ptr<comm::Transport> transport) {
  return mx::distributed::Group(std::make_shared<TransportGroup>(std::move(transport)));
}

Status status_of(const mx::distributed::Group& group) {
  const auto* ours = dynamic_cast<const TransportGroup*>(group.raw_group().get());
  return ours != nullptr ? ours->status() : Status();
}

}  // namespace tandem::tensor
