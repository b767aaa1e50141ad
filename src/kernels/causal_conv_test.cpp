#include "kernels/causal_conv.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/data_test.h"
#include "kernels/state_parts_test.h"

using namespace tandem::kernels;

namespace {

/// A convolution's weights and the tokens of one request, all of them known.
struct ConvLayer {
  size_t channels, taps;
  bool has_gates, has_bias, has_silu;
  std::vector<float> weight, bias;

  explicit ConvLayer(TestRandom& random)
      : channels(random.size(1, 70)),
        taps(random.size(1, 5)),
        has_gates(random.chance(0.7)),
        has_bias(random.chance(0.3)),
        has_silu(random.chance(0.5)),
        weight(random.normals(taps * channels)),
        bias(random.normals(channels)) {}

  size_t state_floats() const { return (taps - 1) * channels; }
};

struct ConvHistory {
  size_t length;
  std::vector<float> x, gate, out_gate;  // [length, channels]
  std::vector<float> out = {};           // of the tokens done
  std::optional<uint32_t> slot = {};

  ConvHistory(const ConvLayer& layer, size_t tokens, TestRandom& random)
      : length(tokens),
        x(random.normals(tokens * layer.channels)),
        gate(random.normals(tokens * layer.channels)),
        out_gate(random.normals(tokens * layer.channels)) {}

  size_t done(const ConvLayer& layer) const { return out.size() / layer.channels; }
  float input(const ConvLayer& layer, size_t at) const {
    return layer.has_gates ? gate[at] * x[at] : x[at];
  }
  /// The last inputs before a token, as a state holds them.
  std::vector<float> state_before(const ConvLayer& layer, size_t token) const {
    std::vector<float> state(layer.state_floats());
    for (size_t i = 0; i < state.size(); ++i)
      if (token * layer.channels + i >= state.size())
        state[i] = input(layer, token * layer.channels + i - state.size());
    return state;
  }
  std::vector<double> expected(const ConvLayer& layer) const {
    std::vector<double> want(x.size());
    for (size_t at = 0; at < want.size(); ++at) {
      const size_t c = at % layer.channels, t = at / layer.channels;
      want[at] = layer.has_bias ? static_cast<double>(layer.bias[c]) : 0.0;
      for (size_t age = 0; age < layer.taps && age <= t; ++age)
        want[at] += static_cast<double>(layer.weight[(layer.taps - 1 - age) * layer.channels + c]) *
                    static_cast<double>(input(layer, at - age * layer.channels));
      if (layer.has_silu) want[at] /= 1 + std::exp(-want[at]);
      if (layer.has_gates) want[at] *= static_cast<double>(out_gate[at]);
    }
    return want;
  }
};

struct ConvStep : StateParts<ConvHistory> {
  const ConvLayer& layer;

  ConvStep(const ConvLayer& l, SlotContents& contents)
      : StateParts{l.state_floats(), contents}, layer(l) {}

  void add(ConvHistory& history, size_t count, TestRandom& random) {
    add_part(history, count, random, 0, 0.2);
  }

  void run(WorkerPool& pool, TestRandom& random) {
    const size_t stride = 3 * layer.channels + random.size(0, 2);
    std::vector<float> in;  // of each token: gate, out_gate, x, as one projection gives them
    for (const Part& part : parts) {
      const auto first = static_cast<ptrdiff_t>(part.history.done(layer) * layer.channels);
      const auto width = static_cast<ptrdiff_t>(layer.channels);
      for (ptrdiff_t t = 0; t < static_cast<ptrdiff_t>(part.count); ++t) {
        for (const auto* from : {&part.history.gate, &part.history.out_gate, &part.history.x})
          in.insert(in.end(), from->begin() + first + t * width,
                    from->begin() + first + (t + 1) * width);
        in.resize(in.size() + stride - 3 * layer.channels);
      }
    }
    const size_t state_stride = layer.state_floats() + random.size(0, 3);
    std::vector<float> states = this->states(state_stride);
    std::vector<float> out(in.size() / stride * layer.channels);
    const std::vector<StateRow> rows = this->rows();
    CausalConvArgs args{.x = in.data() + 2 * layer.channels, .x_stride = stride};
    args.gate_stride = args.out_gate_stride = stride;
    if (layer.has_gates) args.gate = in.data();
    if (layer.has_gates) args.out_gate = in.data() + layer.channels;
    args.weight = layer.weight.data();
    args.bias = layer.has_bias ? layer.bias.data() : nullptr;
    args.channels = layer.channels;
    args.taps = layer.taps;
    args.has_silu = layer.has_silu;
    args.rows = rows;
    args.states = states.data();
    args.state_stride = state_stride;
    args.out = out.data();
    causal_conv(pool, args);
    keep(states, state_stride);
    check_saves();
    size_t at = 0;
    for (const Part& part : parts) {
      const size_t floats = part.count * layer.channels;
      part.history.out.insert(part.history.out.end(), out.begin() + static_cast<ptrdiff_t>(at),
                              out.begin() + static_cast<ptrdiff_t>(at + floats));
      at += floats;
    }
  }

  void check_saves() const {
    for (const Part& part : parts)
      for (const StateSave& save : part.saves)
        REQUIRE(same_bits(slots[save.slot], part.history.state_before(
                                                layer, part.history.done(layer) + save.tokens)));
  }
};

}  // namespace

TEST_CASE("causal conv: chunks in ragged batches give each history's bits alone, and its states") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), two(2, level);
    for (uint32_t seed = 0; seed < cases(200); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      const ConvLayer layer(random);
      std::vector<ConvHistory> histories;
      for (size_t i = random.size(1, 4); i > 0; --i)
        histories.emplace_back(layer, random.chance(0.1) ? 900 : random.size(1, 30), random);
      std::vector<std::vector<float>> slots;
      for (bool is_over = false; !is_over;) {
        ConvStep step{layer, slots};
        for (ConvHistory& history : histories) {
          const size_t left = history.length - history.done(layer);
          const size_t count = std::min(left, random.size(0, left > 100 ? 800 : 7));
          if (count > 0) step.add(history, count, random);
        }
        step.run(random.chance(0.5) ? one : two, random);
        is_over = std::ranges::all_of(histories,
                                      [&](const auto& h) { return h.done(layer) == h.length; });
      }
      for (ConvHistory& history : histories) {
        REQUIRE(worst_error(history.out, history.expected(layer)) < 1e-5);
        const std::vector<float> in_chunks = std::exchange(history.out, {});
        history.slot = {};
        ConvStep whole{layer, slots};
        whole.add(history, history.length, random);
        whole.run(one, random);
        REQUIRE(same_bits(history.out, in_chunks));
      }
    }
  }
}

TEST_CASE("causal conv: no state is a state of zeros") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool pool(1, level);
    TestRandom random(5);
    const size_t channels = 19, taps = 4;
    const auto x = random.normals(2 * channels), weight = random.normals(taps * channels);
    std::vector<float> states((taps - 1) * channels), from_zeros(x.size()), from_none(x.size());
    StateRow row{.first_token = 0, .count = 2};
    CausalConvArgs args{.x = x.data(), .weight = weight.data(), .channels = channels};
    args.taps = taps;
    args.rows = {&row, 1};
    args.states = states.data();
    args.out = from_none.data();
    causal_conv(pool, args);
    row.state = 0;
    args.out = from_zeros.data();
    causal_conv(pool, args);
    CHECK(same_bits(from_none, from_zeros));
  }
}
