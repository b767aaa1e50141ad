#include "tensor/step.h"

#include <cmath>

#include "tensor/host.h"

namespace tandem::tensor {

Step::Step(std::vector<StepRow> rows, uint32_t page_tokens)
    : rows_(std::move(rows)), page_tokens_(page_tokens) {
  for (const StepRow& row : rows_) add_row(row);
}

void Step::add_row(const StepRow& row) {
  spans_.push_back({.first_token = ids_.size(),
                    .count = row.tokens.size(),
                    .start = row.start,
                    .is_chunk = row.is_chunk,
                    .pages = row.pages.data()});
  for (uint32_t i = 0; i < row.tokens.size(); ++i) {
    const uint32_t position = row.start + i;
    ids_.push_back(static_cast<uint32_t>(row.tokens[i]));
    positions_.push_back(position);
    slots_.push_back(row.pages[position / page_tokens_] * page_tokens_ + position % page_tokens_);
  }
  const size_t wanted = row.logits == Wanted::kAll    ? row.tokens.size()
                        : row.logits == Wanted::kLast ? 1
                                                      : 0;
  for (size_t i = ids_.size() - wanted; i < ids_.size(); ++i)
    outputs_.push_back(static_cast<uint32_t>(i));
}

const RopeTable& Step::rope_table(const Rope& rope) const {
  auto [entry, is_new] = rope_tables_.try_emplace(&rope);
  if (!is_new) return entry->second;
  RopeTable& table = entry->second;
  table.cosine.reserve(tokens() * rope.inverse_frequencies.size());
  table.sine.reserve(tokens() * rope.inverse_frequencies.size());
  for (const uint32_t position : positions_)
    for (const float inverse : rope.inverse_frequencies) {
      const double angle = static_cast<double>(position) * static_cast<double>(inverse);
      table.cosine.push_back(static_cast<float>(std::cos(angle)));
      table.sine.push_back(static_cast<float>(std::sin(angle)));
    }
  return table;
}

const std::pair<array, array>& Step::rope_arrays(const Rope& rope) const {
  if (const auto found = rope_arrays_.find(&rope); found != rope_arrays_.end())
    return found->second;
  const RopeTable& table = rope_table(rope);
  const mx::Shape shape = {static_cast<int>(tokens()), 1,
                           static_cast<int>(rope.inverse_frequencies.size())};
  const array scale(rope.scale);
  return rope_arrays_
      .emplace(&rope, std::pair(mx::multiply(from_host(table.cosine, shape), scale),
                                mx::multiply(from_host(table.sine, shape), scale)))
      .first->second;
}

const array& Step::slot_array() const {
  if (slot_array_) return *slot_array_;
  std::vector<uint32_t> content = {static_cast<uint32_t>(slots_.size())};
  content.insert(content.end(), slots_.begin(), slots_.end());
  return slot_array_.emplace(from_host(content));
}

const array& Step::page_array() const {
  if (page_array_) return *page_array_;
  std::vector<uint32_t> content;
  for (const StepRow& row : rows_)
    content.insert(content.end(), row.pages.begin(), row.pages.end());
  return page_array_.emplace(from_host(content));
}

}  // namespace tandem::tensor
