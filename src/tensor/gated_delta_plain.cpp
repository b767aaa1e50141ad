// The plain path of GatedDelta: pieces of rows as products of matrices, each piece at once.
#include <bit>

#include "tensor/gated_delta.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

constexpr uint32_t kLongestPiece = 64;

/// Some tokens of a row that are computed at once.
struct DeltaPiece {
  int row = 0;
  uint32_t first = 0;  // among the step's tokens
  uint32_t count = 0;
  uint32_t copies = 0;  // of the state after them that are saved
};

/// A row's pieces end where a state is saved.
std::vector<DeltaPiece> pieces_of(const Step& step) {
  std::vector<DeltaPiece> out;
  uint32_t first = 0;
  for (int r = 0; r < static_cast<int>(step.rows().size()); ++r) {
    const StepRow& row = step.rows()[static_cast<size_t>(r)];
    const auto tokens = static_cast<uint32_t>(row.tokens.size());
    for (uint32_t at = 0; at < tokens;) {
      uint32_t end = std::min(tokens, at + kLongestPiece), copies = 0;
      for (const StateSave& save : row.saves)
        if (save.tokens > at) end = std::min(end, save.tokens);
      for (const StateSave& save : row.saves) copies += save.tokens == end ? 1U : 0U;
      out.push_back({.row = r, .first = first + at, .count = end - at, .copies = copies});
      at = end;
    }
    first += tokens;
  }
  return out;
}

/// Float32 with an axis of tokens first.
struct DeltaTokens {
  array q, k, v;    // [tokens, value_heads, key_dim or value_dim]
  array log_decay;  // [tokens, value_heads, decays]; the state shrinks by exp(log_decay)
  array beta;       // [tokens, value_heads, 1]
  bool only_adds;   // tokens change nothing of what is there but by the decay: kSsd
};

/// Heads [tokens, heads, dim] of columns of a matrix, each `times` times.
array heads_of(const array& x, uint32_t first, uint32_t heads, uint32_t dim, uint32_t times) {
  const int tokens = x.shape(0), from = static_cast<int>(first);
  const array columns = mx::slice(x, {0, from}, {tokens, from + static_cast<int>(heads * dim)});
  const array apart =
      mx::reshape(columns, {tokens, static_cast<int>(heads), static_cast<int>(dim)});
  return times == 1 ? apart : mx::repeat(apart, static_cast<int>(times), 1);
}

array unit_heads(const array& x, float scale) {
  const array squares = mx::sum(mx::square(x), -1, true);
  return mx::multiply(x, mx::multiply(mx::rsqrt(mx::add(squares, array(1e-6F))), array(scale)));
}

array softplus(const array& x) { return mx::logaddexp(x, array(0.0F)); }

DeltaTokens tokens_of(const DeltaInputs& in,
                      const DeltaShape& s,
                      const DeltaParameters& parameters) {
  const auto as_float = [](const array& x) { return mx::astype(x, mx::float32); };
  const int heads = static_cast<int>(s.value_heads), decays = static_cast<int>(s.decays());
  const mx::Shape of_tokens = {in.qkv.shape(0), heads, decays};
  const array qkv = as_float(in.qkv);
  const array q = heads_of(qkv, 0, s.key_heads, s.key_dim, s.group());
  const array k = heads_of(qkv, s.keys(), s.key_heads, s.key_dim, s.group());
  const bool is_ssd = s.form == DeltaForm::kSsd;
  const array a = in.a ? mx::reshape(as_float(*in.a), of_tokens) : mx::zeros(of_tokens);
  array time = softplus(mx::add(a, from_host(parameters.dt_bias, {heads, decays})));
  if (is_ssd) time = mx::clip(time, array(s.least_dt), array(s.most_dt));
  const array decay = mx::multiply(mx::exp(from_host(parameters.a_log, {heads, 1})), time);
  return {.q = is_ssd ? q : unit_heads(q, 1 / std::sqrt(static_cast<float>(s.key_dim))),
          .k = is_ssd ? k : unit_heads(k, 1),
          .v = heads_of(qkv, 2 * s.keys(), s.value_heads, s.value_dim, 1),
          .log_decay = mx::negative(decay),
          .beta = is_ssd ? time : mx::expand_dims(mx::sigmoid(as_float(*in.b)), -1),
          .only_adds = is_ssd};
}

/// [.., n, 2b, 2b] with these blocks [.., n, b, b] on the diagonal and below it.
array blocks_of(const array& upper, const array& corner, const array& lower) {
  return mx::concatenate(
      {mx::concatenate({upper, mx::zeros_like(upper)}, -1), mx::concatenate({corner, lower}, -1)},
      -2);
}

/// The inverse of I + a, for [.., size, size] below the diagonal; size is a power of two. From
/// inverses of blocks on the diagonal those of blocks twice as large: the one below them is
/// -inverse(lower) * a's * inverse(upper).
array inverse_of_unit_lower(const array& a) {
  const int pieces = a.shape(0), heads = a.shape(1), size = a.shape(2);
  array out = mx::ones({pieces, heads, size, 1, 1});
  for (int b = 1; b < size; b *= 2) {
    const int n = size / (2 * b);
    const array blocks = mx::reshape(a, {pieces, heads, n, 2 * b, n, 2 * b});
    const array below = mx::slice(mx::moveaxis(mx::diagonal(blocks, 0, 2, 4), -1, 2),
                                  {0, 0, 0, b, 0}, {pieces, heads, n, 2 * b, b});
    const array pairs = mx::reshape(out, {pieces, heads, n, 2, b, b});
    const array upper = mx::take(pairs, 0, 3), lower = mx::take(pairs, 1, 3);
    const array corner = mx::negative(mx::matmul(lower, mx::matmul(below, upper)));
    out = blocks_of(upper, corner, lower);
  }
  return mx::reshape(out, {pieces, heads, size, size});
}

/// Where each channel decays by itself: for tokens j <= i the sum over channels of x[i] k[j]
/// exp(since[i] - since[j]), and 0 above, of [.., size, key_dim] each; size is a power of two. A
/// block below the diagonal is a product of two matrices whose decays are counted from where the
/// block's rows begin, which no exponent above 0 is needed for.
array channel_scores(const array& x, const array& k, const array& since) {
  const int pieces = x.shape(0), heads = x.shape(1), size = x.shape(2), dim = x.shape(3);
  array out = mx::reshape(mx::sum(mx::multiply(x, k), -1), {pieces, heads, size, 1, 1});
  for (int b = 1; b < size; b *= 2) {
    const int n = size / (2 * b);
    const auto half = [&](const array& all, int which) {
      return mx::take(mx::reshape(all, {pieces, heads, n, 2, b, dim}), which, 3);
    };
    const array early = half(since, 0), late = half(since, 1);
    const array border = mx::slice(early, {0, 0, 0, b - 1, 0}, {pieces, heads, n, b, dim});
    const array rows = mx::multiply(half(x, 1), mx::exp(mx::subtract(late, border)));
    const array columns = mx::multiply(half(k, 0), mx::exp(mx::subtract(border, early)));
    const array corner = mx::matmul(rows, mx::swapaxes(columns, -1, -2));
    const array pairs = mx::reshape(out, {pieces, heads, n, 2, b, b});
    out = blocks_of(mx::take(pairs, 0, 3), corner, mx::take(pairs, 1, 3));
  }
  return mx::reshape(out, {pieces, heads, size, size});
}

/// The same where all channels of a head decay alike: since is [.., size, 1].
array head_scores(const array& x, const array& k, const array& since) {
  const int size = since.shape(2);
  const array is_past = mx::tri(size, size, 0, mx::bool_);
  const array between = mx::subtract(since, mx::swapaxes(since, -1, -2));
  const array kept = mx::exp(mx::where(is_past, between, array(-INFINITY)));
  return mx::multiply(mx::matmul(x, mx::swapaxes(k, -1, -2)), kept);
}

/// All that a piece needs but the state before it, S: [pieces, value_heads, ...]. With the rows of
/// changes D = values - keys S, the piece reads reads S + scores D and leaves S * decay + moved D.
struct DeltaProducts {
  array values;               // [size, value_dim]
  std::optional<array> keys;  // [size, key_dim]; none where changes do not depend on S
  array reads, scores;        // [size, key_dim], [size, size]
  array moved, decay;         // [key_dim, size], [decays, 1]
};

/// Heads before tokens, of tokens [pieces, size] by number.
array of_pieces(const array& x, const array& numbers) {
  const array padded = mx::concatenate({x, mx::zeros({1, x.shape(1), x.shape(2)})}, 0);
  return mx::swapaxes(mx::take(padded, numbers, 0), 1, 2);
}

DeltaProducts products_of(const DeltaTokens& tokens, const array& numbers) {
  const array q = of_pieces(tokens.q, numbers), k = of_pieces(tokens.k, numbers);
  const array v = of_pieces(tokens.v, numbers), beta = of_pieces(tokens.beta, numbers);
  const array since = mx::cumsum(of_pieces(tokens.log_decay, numbers), -2);  // the piece's begin
  const array grown = mx::exp(since);
  const int size = since.shape(2);
  const array last =
      mx::slice(since, {0, 0, size - 1, 0}, {since.shape(0), since.shape(1), size, since.shape(3)});
  const auto scores = since.shape(3) == 1 ? head_scores : channel_scores;
  DeltaProducts out = {
      .values = mx::multiply(beta, v),
      .keys = {},
      .reads = mx::multiply(grown, q),
      .scores = scores(q, k, since),
      .moved = mx::swapaxes(mx::multiply(mx::exp(mx::subtract(last, since)), k), -1, -2),
      .decay = mx::swapaxes(mx::exp(last), -1, -2)};
  if (tokens.only_adds) return out;
  const array met = mx::multiply(beta, scores(k, k, since));
  const array inverse = inverse_of_unit_lower(mx::tril(met, -1));
  out.values = mx::matmul(inverse, out.values);
  out.keys = mx::matmul(inverse, mx::multiply(mx::multiply(beta, grown), k));
  return out;
}

/// The state after piece p, and what its tokens read.
std::pair<array, array> after_piece(const DeltaProducts& x, int p, const array& state) {
  const auto own = [&](const array& all) { return mx::take(all, p, 0); };
  const array change =
      x.keys ? mx::subtract(own(x.values), mx::matmul(own(*x.keys), state)) : own(x.values);
  const array read = mx::add(mx::matmul(own(x.reads), state), mx::matmul(own(x.scores), change));
  return {mx::add(mx::multiply(own(x.decay), state), mx::matmul(own(x.moved), change)), read};
}

/// The tokens of pieces by number, [pieces, longest piece]; where one is shorter, the number of all
/// tokens.
array numbers_of(const std::vector<DeltaPiece>& pieces, size_t tokens) {
  uint32_t longest = 0;
  for (const DeltaPiece& piece : pieces) longest = std::max(longest, piece.count);
  const size_t size = std::bit_ceil(longest);
  std::vector<uint32_t> out(pieces.size() * size, static_cast<uint32_t>(tokens));
  for (size_t p = 0; p < pieces.size(); ++p)
    for (uint32_t i = 0; i < pieces[p].count; ++i) out[p * size + i] = pieces[p].first + i;
  return from_host(out, {static_cast<int>(pieces.size()), static_cast<int>(size)});
}

}  // namespace

array GatedDelta::run_plain(StatePool& pool,
                            StatePart part,
                            const DeltaInputs& in,
                            const Step& step) const {
  const auto pieces = pieces_of(step);
  const DeltaTokens tokens = tokens_of(in, shape_, *parameters_);
  const DeltaProducts products = products_of(tokens, numbers_of(pieces, step.tokens()));
  const array before =
      mx::reshape(load_states(pool, part, step),
                  {-1, static_cast<int>(shape_.value_heads), static_cast<int>(shape_.key_dim),
                   static_cast<int>(shape_.value_dim)});
  std::vector<array> out, saved;
  array state = before;
  for (int p = 0; p < static_cast<int>(pieces.size()); ++p) {
    const DeltaPiece& piece = pieces[static_cast<size_t>(p)];
    const bool is_first = p == 0 || pieces[static_cast<size_t>(p - 1)].row != piece.row;
    const auto [after, read] =
        after_piece(products, p, is_first ? mx::take(before, piece.row, 0) : state);
    state = after;
    const int count = static_cast<int>(piece.count);
    const array rows =
        mx::slice(mx::swapaxes(read, 0, 1), {0, 0, 0}, {count, read.shape(0), read.shape(2)});
    out.push_back(mx::reshape(rows, {count, static_cast<int>(shape_.values())}));
    for (uint32_t i = 0; i < piece.copies; ++i)
      saved.push_back(mx::reshape(state, {1, static_cast<int>(part.floats)}));
  }
  if (!saved.empty()) store_states(pool, part, mx::concatenate(saved, 0), step);
  array all = mx::concatenate(out, 0);
  if (tokens.only_adds) {
    const array skip = from_host(parameters_->skip, {static_cast<int>(shape_.value_heads), 1});
    all = mx::add(all, mx::reshape(mx::multiply(tokens.v, skip), all.shape()));
  }
  return mx::astype(all, context_.dtype);
}

}  // namespace tandem::tensor
