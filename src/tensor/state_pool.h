// Slots of recurrent state, written in place.
#pragma once

#include "tensor/step.h"

namespace tandem::tensor {

/// One recurrent layer's states, all of one size: what a row goes on from instead of keys and
/// values of every position. As of a Pool, `states` is never an output of a node: whoever writes
/// takes it as an input and returns only a new `order`, which every reader and the next writer
/// depend on.
struct StatePool {
  array states;  // [slots, floats] float32
  array order;   // [1] uint32, 0

  uint32_t slots() const { return static_cast<uint32_t>(states.shape(0)); }
  uint32_t floats() const { return static_cast<uint32_t>(states.shape(1)); }
};

/// Content is undefined: a slot is written before it is read.
StatePool make_state_pool(uint32_t slots, uint32_t floats);

/// A piece of every slot: of a layer whose operations keep one each.
struct StatePart {
  uint32_t offset = 0;  // floats before it
  uint32_t floats = 0;
};

/// Plain path: what the step's rows begin with, [rows, part.floats]; zeros where nothing came
/// before.
array load_states(StatePool& pool, StatePart part, const Step& step);

/// Plain path: leaves states [saves, part.floats], row by row in the order of their saves, in their
/// slots. Nothing where nobody saves.
void store_states(StatePool& pool, StatePart part, const array& values, const Step& step);

/// Fast path: where a bound call finds a part of the states of the rows of the step of the moment.
struct BoundStates {
  float* first = nullptr;  // of slot 0
  size_t stride = 0;       // floats from slot to slot

  BoundStates() = default;
  /// `states` is a node's input, const by convention only.
  BoundStates(const array& states, StatePart part)
      : first(const_cast<float*>(states.data<float>()) + part.offset),
        stride(static_cast<size_t>(states.shape(1))) {}

  /// The state before the row's first token; null: nothing came before it.
  const float* before(const StepRow& row) const { return row.state ? at(*row.state) : nullptr; }
  float* at(uint32_t slot) const { return first + slot * stride; }
};

/// Fast path: a node over `inputs` and a part of the pool's states, with one float32 output of this
/// shape. `bind` returns the call that computes `out`, which has its memory, and leaves states
/// where the step's rows save them.
array state_op(
    const char* name,
    mx::Shape shape,
    StatePool& pool,
    StatePart part,
    std::vector<array> inputs,
    std::function<CpuCall(const std::vector<array>& inputs, float* out, BoundStates)> bind);

/// Fast path: gives a node's output `out`, a pool's order after it, the memory of the order before.
/// The evaluator runs nodes in their place, so the one is the other.
void pass_order(array& out, const array& before);

}  // namespace tandem::tensor
