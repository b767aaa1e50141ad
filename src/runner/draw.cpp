#include "runner/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sample/filters.h"
#include "sample/philox.h"
#include "sample/row_math.h"
#include "tensor/host.h"

namespace tandem::runner {

using tensor::array;
namespace mx = tensor::mx;

namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int kBlock = 256;  // columns that are added up before blocks are: short sums round less

using Rows = std::vector<const DrawRow*>;

/// What a row costs: the largest logit, one pass of sums, or a sort.
enum class Way : uint8_t { kGreedy, kAny, kFiltered };

Way way_of(const plan::Draw& d, int vocab) {
  if (!(d.temperature > 0)) return Way::kGreedy;
  const bool filters = sample::Filters::any(plan::sampling_of(d), static_cast<size_t>(vocab));
  return filters ? Way::kFiltered : Way::kAny;
}

/// One number a row, [rows, 1].
template <class T>
array column(const Rows& rows, T (*value)(const DrawRow&)) {
  std::vector<T> values;
  for (const DrawRow* row : rows) values.push_back(value(*row));
  return tensor::from_host(values, {static_cast<int>(rows.size()), 1});
}

float uniform_of(const DrawRow& row) {
  const double u =
      sample::uniform({.seed = row.draw.seed, .choice = row.draw.choice, .position = row.position},
                      sample::Purpose::kToken);
  return std::min(static_cast<float>(u), std::nextafter(1.0F, 0.0F));
}

float scale_of(const DrawRow& row) { return std::min(1 / row.draw.temperature, kLargest); }

/// 0, 1, 2, …
bool is_counting(const std::vector<int32_t>& index) {
  int32_t next = 0;
  return std::ranges::all_of(index, [&](int32_t at) { return at == next++; });
}

/// Logits of the rows with their largest: NaN becomes -infinity, +infinity the largest number.
struct Prepared {
  array x;    // [rows, vocab]
  array max;  // [rows, 1]
};

Prepared prepare(const array& logits, const Rows& rows) {
  std::vector<int32_t> index;
  for (const DrawRow* row : rows) index.push_back(static_cast<int32_t>(row->row));
  const bool are_all = static_cast<int>(index.size()) == logits.shape(0) && is_counting(index);
  const array taken = are_all ? logits : mx::take(logits, tensor::from_host(index), 0);
  const array x =
      mx::where(mx::isnan(taken), array(sample::kNoLogit), mx::minimum(taken, array(kLargest)));
  return {x, mx::max(x, 1, true)};
}

/// The first column where `here` holds, else the last one that `may` be drawn, else -1: [rows].
array first(const array& here, const array& may) {
  const int columns = here.shape(1);
  const array at = mx::reshape(mx::arange(columns, mx::int32), {1, columns});
  return mx::minimum(mx::min(mx::where(here, at, array(columns)), 1),
                     mx::max(mx::where(may, at, array(-1)), 1));
}

/// Sums from each row's first column through each column, [rows, columns].
array sums(const array& x) {
  const int rows = x.shape(0), columns = x.shape(1);
  const int blocks = (columns + kBlock - 1) / kBlock;
  const array padded =
      mx::pad(x, std::vector<int>{1}, {0}, {blocks * kBlock - columns}, array(0.0F));
  const array within = mx::cumsum(mx::reshape(padded, {rows, blocks, kBlock}), 2);
  // On CUDA, MLX 0.32 scans an axis of length 1 of a slice by the slice's stride, over other
  // arrays.
  if (blocks == 1) return mx::slice(mx::reshape(within, {rows, kBlock}), {0, 0}, {rows, columns});
  const array whole = mx::slice(within, {0, 0, kBlock - 1}, {rows, blocks, kBlock});
  const array all = mx::add(within, mx::cumsum(whole, 1, false, false));
  return mx::slice(mx::reshape(all, {rows, blocks * kBlock}), {0, 0}, {rows, columns});
}

array last_column(const array& x) {
  return mx::slice(x, {0, x.shape(1) - 1}, {x.shape(0), x.shape(1)});
}

/// exp(x - max), 0 where x is -infinity.
array weights(const array& x, const array& max, const array& scale) {
  const array weight = mx::exp(mx::multiply(mx::subtract(x, max), scale));
  return mx::where(mx::greater(x, array(sample::kNoLogit)), weight, array(0.0F));
}

array draw_greedy(const Prepared& p) {
  const array best =
      mx::logical_and(mx::equal(p.x, p.max), mx::greater(p.max, array(sample::kNoLogit)));
  return first(best, best);
}

/// One of the columns that `may` be drawn, by softmax of tempered logits.
array draw_any(const Prepared& p, const Rows& rows, const std::optional<array>& may) {
  array weight = weights(p.x, p.max, column(rows, scale_of));
  if (may) weight = mx::where(*may, weight, array(0.0F));
  const array sum = sums(weight);
  const array target = mx::multiply(last_column(sum), column(rows, uniform_of));
  const array has_weight = mx::greater(weight, array(0.0F));
  return first(mx::logical_and(mx::greater(sum, target), has_weight), has_weight);
}

/// Which columns survive top_p, min_p and top_k: see sample/filters.h.
array survivors(const Prepared& p, const Rows& rows) {
  const int count = p.x.shape(0), vocab = p.x.shape(1);
  const array sorted = mx::negative(mx::sort(mx::negative(p.x), 1));
  const array sum = sums(weights(sorted, p.max, array(1.0F)));
  const array likelier =
      mx::concatenate({mx::zeros({count, 1}), mx::slice(sum, {0, 0}, {count, vocab - 1})}, 1);
  const array share = column<float>(rows, [](const DrawRow& row) {
    return sample::uses_top_p(row.draw.top_p) ? row.draw.top_p
                                              : std::numeric_limits<float>::infinity();
  });
  const array within = mx::sum(
      mx::astype(mx::less(likelier, mx::multiply(last_column(sum), share)), mx::int32), 1, true);
  const array least = column<float>(rows, [](const DrawRow& row) {
    return row.draw.min_p > 0 ? std::log(std::min(row.draw.min_p, 1.0F)) : sample::kNoLogit;
  });
  const array floor = mx::maximum(
      mx::take_along_axis(sorted, mx::maximum(mx::subtract(within, array(1)), array(0)), 1),
      mx::add(p.max, least));

  static constexpr auto kAll = std::numeric_limits<int32_t>::max();
  const array top_k = mx::minimum(
      column<int32_t>(rows,
                      [](const DrawRow& row) {
                        const uint32_t k = row.draw.top_k;
                        return k == 0 || k > uint32_t{kAll} ? kAll : static_cast<int32_t>(k);
                      }),
      array(vocab));
  const array kth = mx::take_along_axis(sorted, mx::subtract(top_k, array(1)), 1);
  const array above = mx::greater(p.x, kth);
  const array ties = mx::astype(mx::equal(p.x, kth), mx::int32);
  const array room = mx::subtract(top_k, mx::sum(mx::astype(above, mx::int32), 1, true));
  const array fits =
      mx::logical_and(mx::greater(ties, array(0)), mx::less_equal(mx::cumsum(ties, 1), room));
  return mx::logical_and(mx::greater_equal(p.x, floor), mx::logical_or(above, fits));
}

array draw_rows(Way way, const array& logits, const Rows& rows) {
  const Prepared prepared = prepare(logits, rows);
  if (way == Way::kGreedy) return draw_greedy(prepared);
  if (way == Way::kAny) return draw_any(prepared, rows, {});
  return draw_any(prepared, rows, survivors(prepared, rows));
}

}  // namespace

Drawn draw(const array& logits, std::span<const DrawRow> rows) {
  std::array<Rows, 3> by_way;
  std::vector<uint32_t> place;
  for (const DrawRow& row : rows) {
    Rows& same = by_way[static_cast<size_t>(way_of(row.draw, logits.shape(1)))];
    place.push_back(static_cast<uint32_t>(same.size()));
    same.push_back(&row);
  }
  std::vector<array> parts;
  std::array<uint32_t, 3> begin{};
  uint32_t done = 0;
  for (size_t way = 0; way < by_way.size(); ++way) {
    begin[way] = done;
    done += static_cast<uint32_t>(by_way[way].size());
    if (by_way[way].empty()) continue;
    parts.push_back(draw_rows(static_cast<Way>(way), logits, by_way[way]));
  }
  for (size_t i = 0; i < rows.size(); ++i)
    place[i] += begin[static_cast<size_t>(way_of(rows[i].draw, logits.shape(1)))];
  const array ids = parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
  return {.ids = ids, .next = mx::maximum(ids, array(0)), .place = std::move(place)};
}

}  // namespace tandem::runner
