#include "kernels/causal_conv.h"

#include <algorithm>

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

/// What the convolution takes in of one of the new tokens.
void put_input(const CausalConvArgs& args, size_t token, float* to) {
  const float* x = args.x + token * args.x_stride;
  const float* gate = args.gate == nullptr ? nullptr : args.gate + token * args.gate_stride;
  for (size_t i = 0; i < args.channels; ++i) to[i] = gate == nullptr ? x[i] : gate[i] * x[i];
}

/// The state after the row's first `tokens` tokens, from the one before them, which may lie there.
void save_state(
    const CausalConvArgs& args, const StateRow& row, size_t tokens, const float* from, float* to) {
  const size_t kept = args.taps - 1;
  for (size_t j = 0; j < kept; ++j) {
    const size_t at = tokens + j;  // counted from the oldest input of the state
    float* input = to + j * args.channels;
    if (at >= kept)
      put_input(args, row.first_token + at - kept, input);
    else if (from == nullptr)
      std::fill_n(input, args.channels, 0.0f);
    else if (at != j || from != to)
      std::copy_n(from + at * args.channels, args.channels, input);
  }
}

/// The slot that the row began from comes last: the other saves may read it.
void save_row(const CausalConvArgs& args, const StateRow& row) {
  const auto slot = [&](uint32_t index) { return args.states + index * args.state_stride; };
  const float* from = row.state ? slot(*row.state) : nullptr;
  const StateSave* own = nullptr;
  for (const StateSave& save : row.saves) {
    if (row.state == save.slot)
      own = &save;
    else
      save_state(args, row, save.tokens, from, slot(save.slot));
  }
  if (own != nullptr) save_state(args, row, own->tokens, from, slot(own->slot));
}

}  // namespace

void causal_conv(WorkerPool& pool, const CausalConvArgs& given) {
  CausalConvArgs args = given;
  for (size_t* stride : {&args.x_stride, &args.gate_stride, &args.out_gate_stride})
    if (*stride == 0) *stride = args.channels;
  if (args.state_stride == 0) args.state_stride = (args.taps - 1) * args.channels;
  size_t tokens = 0;
  for (const StateRow& row : args.rows) tokens = std::max(tokens, row.first_token + row.count);
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, tokens, args.channels * (args.taps + 2),
             [&](size_t begin, size_t end) { kernels.causal_conv(args, begin, end); });
  share_rows(pool, args.rows.size(), 2 * args.taps * args.channels, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) save_row(args, args.rows[r]);
  });
}

}  // namespace tandem::kernels
