#include "tensor/state_pool.h"

#include <cstring>

#include "tensor/pool.h"
#include "tensor/pool_gpu.h"

namespace tandem::tensor {
namespace {

std::vector<uint32_t> saved_slots(const Step& step) {
  std::vector<uint32_t> slots;
  for (const StepRow& row : step.rows())
    for (const StateSave& save : row.saves) slots.push_back(save.slot);
  return slots;
}

array store_on_cpu(const StatePool& pool, StatePart part, const array& values, const Step& step) {
  return cpu_op("StateStore", {1}, mx::uint32, {pool.states, values, pool.order},
                [part, slots = saved_slots(step)](const auto& in, auto& out) {
                  const BoundStates states(in[0], part);
                  for (size_t i = 0; i < slots.size(); ++i)
                    std::memcpy(states.at(slots[i]), in[1].template data<float>() + i * part.floats,
                                part.floats * sizeof(float));
                  allocate(out[0]);
                  *out[0].template data<uint32_t>() = 0;
                });
}

/// 0, once `read` has happened.
array order_after(const array& read) {
  const array one = mx::reshape(mx::slice(read, {0, 0}, {1, 1}), {1});
  return mx::astype(mx::less(one, array(-INFINITY)), mx::uint32);
}

}  // namespace

StatePool make_state_pool(uint32_t slots, uint32_t floats) {
  array order = mx::zeros({1}, mx::uint32);
  mx::eval(order);
  return {.states = pool_memory({static_cast<int>(slots), static_cast<int>(floats)}, mx::float32),
          .order = order};
}

array load_states(StatePool& pool, StatePart part, const Step& step) {
  const auto from = static_cast<int>(part.offset), to = from + static_cast<int>(part.floats);
  const array slots = ordered(step.state_array(), pool.order);
  const array rows = mx::take(pool.states, slots, 0);
  const array own = mx::slice(rows, {0, from}, {rows.shape(0), to});
  const array out = mx::where(step.has_state_array(), own, array(0.0F));
  pool.order = order_after(out);
  return out;
}

void store_states(StatePool& pool, StatePart part, const array& values, const Step& step) {
  if (values.shape(0) == 0) return;
  if (values.ndim() != 2 || values.shape(1) != static_cast<int>(part.floats) ||
      values.shape(0) + 1 != step.save_array().shape(0))
    throw std::invalid_argument(fmt::format("[store_states] {} x {} do not fit {} states of {}",
                                            values.shape(0), values.shape(1),
                                            step.save_array().shape(0) - 1, part.floats));
  const array rows = mx::contiguous(mx::astype(values, mx::float32));
  pool.order = on_cpu() ? store_on_cpu(pool, part, rows, step)
                        : store_on_gpu(pool, part, rows, step.save_array());
}

array state_op(
    const char* name,
    mx::Shape shape,
    StatePool& pool,
    StatePart part,
    std::vector<array> inputs,
    std::function<CpuCall(const std::vector<array>& inputs, float* out, BoundStates)> bind) {
  const size_t own = inputs.size();
  inputs.insert(inputs.end(), {pool.states, pool.order});
  const auto run = [part, own, bind = std::move(bind)](const std::vector<array>& in,
                                                       std::vector<array>& out) {
    allocate(out[0]);
    pass_order(out[1], in[own + 1]);
    return bind(in, out[0].data<float>(), BoundStates(in[own], part));
  };
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), name, run);
  const auto out =
      array::make_arrays({std::move(shape), {1}}, {mx::float32, mx::uint32}, op, std::move(inputs));
  pool.order = out[1];
  return out[0];
}

void pass_order(array& out, const array& before) {
  if (!out.data_shared_ptr()) return out.copy_shared_buffer(before);
  *out.data<uint32_t>() = 0;
}

}  // namespace tandem::tensor
