#include "kernels/gated_delta.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/data_test.h"
#include "kernels/state_parts_test.h"

using namespace tandem::kernels;

namespace {

struct DeltaLayer {
  DeltaForm form;
  size_t key_heads, group, key_dim, value_dim;
  std::vector<float> a_log, dt_bias, skip;
  float least_dt = 0.5f, most_dt = 2.0f;

  DeltaLayer(DeltaForm f, TestRandom& random)
      : form(f),
        key_heads(random.size(1, 3)),
        group(random.size(1, 3)),
        key_dim(random.size(1, 40)),
        value_dim(random.chance(0.3) ? random.size(60, 140) : random.size(1, 40)),
        a_log(random.normals(value_heads())),
        dt_bias(random.normals(value_heads() * decays())),
        skip(random.normals(value_heads())) {}

  size_t decays() const { return form == DeltaForm::kChannelDelta ? key_dim : 1; }
  size_t value_heads() const { return key_heads * group; }
  size_t keys() const { return key_heads * key_dim; }
  size_t values() const { return value_heads() * value_dim; }
  size_t state_floats() const { return value_heads() * key_dim * value_dim; }
};

/// The tokens of a request.
struct DeltaHistory {
  size_t length;
  std::vector<float> q, k, v, a, b;
  std::vector<float> out = {};  // of the tokens done
  std::optional<uint32_t> slot = {};

  DeltaHistory(const DeltaLayer& layer, size_t tokens, TestRandom& random)
      : length(tokens),
        q(random.normals(tokens * layer.keys())),
        k(random.normals(tokens * layer.keys())),
        v(random.normals(tokens * layer.values())),
        a(random.normals(tokens * layer.value_heads() * layer.decays(), 3.0f)),
        b(random.normals(tokens * layer.value_heads())) {}

  size_t done(const DeltaLayer& layer) const { return out.size() / layer.values(); }
};

std::vector<double> unit(const float* x, size_t n, double scale) {
  double squares = 1e-6;
  for (size_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  std::vector<double> out(x, x + n);
  for (double& each : out) each *= scale / std::sqrt(squares);
  return out;
}

/// The rule as it is written down, in double precision. State after each token.
struct DeltaOracle {
  std::vector<double> out;
  std::vector<std::vector<double>> states;

  DeltaOracle(const DeltaLayer& layer, const DeltaHistory& x) {
    std::vector<double> state(layer.state_floats());
    for (size_t t = 0; t < x.length; ++t) {
      for (size_t h = 0; h < layer.value_heads(); ++h) run_head(layer, x, t, h, state);
      states.push_back(state);
    }
  }

 private:
  /// q and k of a head's token.
  static std::vector<double> vector_of(const DeltaLayer& layer, const float* x, double scale) {
    if (layer.form == DeltaForm::kSsd) return {x, x + layer.key_dim};
    return unit(x, layer.key_dim, scale);
  }

  static double softplus_of(const DeltaLayer& layer, const DeltaHistory& x, size_t t, size_t i) {
    const size_t at = t * layer.value_heads() * layer.decays() + i;
    return std::log1p(
        std::exp(static_cast<double>(x.a[at]) + static_cast<double>(layer.dt_bias[i])));
  }

  void run_head(const DeltaLayer& layer,
                const DeltaHistory& x,
                size_t t,
                size_t h,
                std::vector<double>& state) {
    const bool is_ssd = layer.form == DeltaForm::kSsd;
    const size_t dk = layer.key_dim, dv = layer.value_dim, decays = layer.decays();
    const size_t key = t * layer.keys() + h / layer.group * dk;
    const auto q = vector_of(layer, &x.q[key], 1 / std::sqrt(static_cast<double>(dk)));
    const auto k = vector_of(layer, &x.k[key], 1);
    double beta = 1 / (1 + std::exp(-static_cast<double>(x.b[t * layer.value_heads() + h])));
    std::vector<double> g(dk);
    for (size_t i = 0; i < dk; ++i) {
      double dt = softplus_of(layer, x, t, h * decays + i % decays);
      if (is_ssd) beta = dt = std::clamp<double>(dt, layer.least_dt, layer.most_dt);
      g[i] = std::exp(-std::exp(static_cast<double>(layer.a_log[h])) * dt);
    }
    for (size_t c = 0; c < dv; ++c) {
      double* s = &state[h * dk * dv + c];
      const auto v = static_cast<double>(x.v[t * layer.values() + h * dv + c]);
      double seen = 0, y = is_ssd ? static_cast<double>(layer.skip[h]) * v : 0;
      for (size_t i = 0; i < dk; ++i) seen += (s[i * dv] *= g[i]) * k[i];
      const double change = beta * (is_ssd ? v : v - seen);
      for (size_t i = 0; i < dk; ++i) y += (s[i * dv] += k[i] * change) * q[i];
      out.push_back(y);
    }
  }
};

struct DeltaStep : StateParts<DeltaHistory> {
  const DeltaLayer& layer;

  DeltaStep(const DeltaLayer& l, SlotContents& contents)
      : StateParts{l.state_floats(), contents}, layer(l) {}

  void add(DeltaHistory& history, size_t count, TestRandom& random) {
    add_part(history, count, random, 1, 0.1);
  }

  /// The parts' tokens of one input, one after the other, with gaps of NaN.
  std::vector<float> gathered(std::vector<float> DeltaHistory::* from,
                              size_t width,
                              size_t stride) const {
    std::vector<float> all;
    for (const Part& part : parts)
      for (size_t t = part.history.done(layer); t < part.history.done(layer) + part.count; ++t) {
        const float* x = (part.history.*from).data() + t * width;
        all.insert(all.end(), x, x + width);
        all.resize(all.size() + stride - width, NAN);
      }
    return all;
  }

  void run(WorkerPool& pool, TestRandom& random) {
    GatedDeltaArgs args{.a_log = layer.a_log.data(), .dt_bias = layer.dt_bias.data()};
    args.q_stride = layer.keys() + random.size(0, 2);
    args.v_stride = layer.values() + random.size(0, 2);
    const auto q = gathered(&DeltaHistory::q, layer.keys(), args.q_stride);
    const auto k = gathered(&DeltaHistory::k, layer.keys(), layer.keys());
    const auto v = gathered(&DeltaHistory::v, layer.values(), args.v_stride);
    const auto a = gathered(&DeltaHistory::a, layer.value_heads() * layer.decays(),
                            layer.value_heads() * layer.decays());
    const auto b = gathered(&DeltaHistory::b, layer.value_heads(), layer.value_heads());
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.a = a.data();
    args.b = layer.form == DeltaForm::kSsd ? nullptr : b.data();
    args.form = layer.form;
    args.skip = layer.skip.data();
    args.least_dt = layer.least_dt;
    args.most_dt = layer.most_dt;
    args.key_heads = layer.key_heads;
    args.value_heads = layer.value_heads();
    args.key_dim = layer.key_dim;
    args.value_dim = layer.value_dim;
    const std::vector<StateRow> rows = this->rows();
    args.rows = rows;
    args.state_stride = layer.state_floats() + random.size(0, 3);
    std::vector<float> states = this->states(args.state_stride);
    args.states = states.data();
    std::vector<float> out(b.size() / layer.value_heads() * layer.values());
    args.out = out.data();
    gated_delta(pool, args);
    keep(states, args.state_stride);
    const float* from = out.data();
    for (const Part& part : parts) {
      part.history.out.insert(part.history.out.end(), from, from + part.count * layer.values());
      from += part.count * layer.values();
    }
  }

  /// Of the step that ran.
  void check_saves(const DeltaOracle& oracle, const DeltaHistory& history) const {
    for (const Part& part : parts) {
      if (&part.history != &history) continue;
      const size_t before = history.done(layer) - part.count;
      for (const StateSave& save : part.saves)
        REQUIRE(worst_error(slots[save.slot], oracle.states[before + save.tokens - 1]) < 1e-4);
    }
  }
};

/// Runs the histories in steps of random parts until all are done.
void run_in_parts(const DeltaLayer& layer,
                  std::vector<DeltaHistory>& histories,
                  const std::vector<DeltaOracle>& oracles,
                  WorkerPool& pool,
                  TestRandom& random) {
  std::vector<std::vector<float>> slots;
  for (bool is_over = false; !is_over;) {
    DeltaStep step{layer, slots};
    for (DeltaHistory& history : histories) {
      const size_t left = history.length - history.done(layer);
      const size_t count = std::min(left, random.size(0, 7));
      if (count > 0) step.add(history, count, random);
    }
    step.run(pool, random);
    for (size_t i = 0; i < histories.size(); ++i) step.check_saves(oracles[i], histories[i]);
    is_over =
        std::ranges::all_of(histories, [&](const auto& h) { return h.done(layer) == h.length; });
  }
}

}  // namespace

TEST_CASE("gated delta: as in doubles; chunks in ragged batches have each history's bits alone") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), two(2, level);
    for (uint32_t seed = 0; seed < cases(150); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      const DeltaLayer layer(static_cast<DeltaForm>(seed % 3), random);
      std::vector<DeltaHistory> histories;
      std::vector<DeltaOracle> oracles;
      for (size_t i = random.size(1, 3); i > 0; --i) {
        histories.emplace_back(layer, random.size(1, 30), random);
        oracles.emplace_back(layer, histories.back());
      }
      run_in_parts(layer, histories, oracles, seed % 2 == 0 ? one : two, random);
      for (size_t i = 0; i < histories.size(); ++i) {
        DeltaHistory& history = histories[i];
        REQUIRE(worst_error(history.out, oracles[i].out) < 1e-4);
        const std::vector<float> in_parts = std::exchange(history.out, {});
        history.slot = {};
        std::vector<std::vector<float>> slots;
        DeltaStep whole{layer, slots};
        whole.add(history, history.length, random);
        whole.run(one, random);
        REQUIRE(same_bits(history.out, in_parts));
      }
    }
  }
}
