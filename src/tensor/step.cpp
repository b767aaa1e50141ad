#include "tensor/step.h"

#include <cmath>

#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// How many, then they themselves.
array counted(const std::vector<uint32_t>& values) {
  std::vector<uint32_t> content = {static_cast<uint32_t>(values.size())};
  content.insert(content.end(), values.begin(), values.end());
  return from_host(content);
}

}  // namespace

Step::Step(std::vector<StepRow> rows, uint32_t page_tokens)
    : rows_(std::move(rows)), page_tokens_(page_tokens) {
  for (const StepRow& row : rows_) add_row(row);
}

const std::vector<uint32_t>& pages_of(const StepRow& row, PageGroup group) {
  return group == PageGroup::kAll ? row.pages : row.window_pages;
}

uint32_t first_of(const StepRow& row, PageGroup group) {
  return group == PageGroup::kAll ? 0 : row.window_start;
}

void Step::add_row(const StepRow& row) {
  add_pages(row, PageGroup::kAll);
  if (!row.window_pages.empty()) add_pages(row, PageGroup::kWindow);
  state_rows_.push_back({.first_token = ids_.size(),
                         .count = row.tokens.size(),
                         .state = row.state,
                         .saves = row.saves});
  for (uint32_t i = 0; i < row.tokens.size(); ++i) {
    const uint32_t position = row.start + i;
    ids_.push_back(static_cast<uint32_t>(row.tokens[i]));
    positions_.push_back(position);
  }
  if (row.pooled > 0) pooled_.push_back({.first = ids_.size() - row.pooled, .count = row.pooled});
  reuses_choices_ |= row.reuse.has_value();
  const size_t wanted = row.logits == Wanted::kAll    ? row.tokens.size()
                        : row.logits == Wanted::kLast ? 1
                                                      : 0;
  for (size_t i = ids_.size() - wanted; i < ids_.size(); ++i)
    outputs_.push_back(static_cast<uint32_t>(i));
}

/// Requires nothing of ids_ but the tokens of the rows before.
void Step::add_pages(const StepRow& row, PageGroup group) {
  Paging& to = paging(group);
  const uint32_t* pages = pages_of(row, group).data();
  if (const uint32_t missing = first_of(row, group) / page_tokens_; missing > 0) {
    std::vector<uint32_t>& table = to.tables.emplace_back(missing, 0);
    table.insert(table.end(), row.window_pages.begin(), row.window_pages.end());
    pages = table.data();
  }
  to.spans.push_back({.first_token = ids_.size(),
                      .count = row.tokens.size(),
                      .start = row.start,
                      .is_chunk = row.is_chunk,
                      .pages = pages});
  for (uint32_t i = 0; i < row.tokens.size(); ++i) {
    const uint32_t position = row.start + i;
    to.slots.push_back(pages[position / page_tokens_] * page_tokens_ + position % page_tokens_);
  }
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

const array& Step::slot_array(PageGroup group) const {
  const Paging& p = paging(group);
  return p.slot_array ? *p.slot_array : p.slot_array.emplace(counted(p.slots));
}

const array& Step::page_array(PageGroup group) const {
  const Paging& p = paging(group);
  if (p.page_array) return *p.page_array;
  std::vector<uint32_t> content;
  for (const StepRow& row : rows_)
    content.insert(content.end(), pages_of(row, group).begin(), pages_of(row, group).end());
  return p.page_array.emplace(from_host(content));
}

const array& Step::state_array() const {
  if (state_array_) return *state_array_;
  std::vector<uint32_t> slots;
  for (const StepRow& row : rows_) slots.push_back(row.state.value_or(0));
  return state_array_.emplace(from_host(slots));
}

const array& Step::has_state_array() const {
  if (has_state_array_) return *has_state_array_;
  std::vector<uint8_t> has;
  for (const StepRow& row : rows_) has.push_back(row.state.has_value());
  return has_state_array_.emplace(
      from_host(has.data(), {static_cast<int>(has.size()), 1}, mx::bool_));
}

const array& Step::save_array() const {
  if (save_array_) return *save_array_;
  std::vector<uint32_t> slots;
  for (const StepRow& row : rows_)
    for (const StateSave& save : row.saves) slots.push_back(save.slot);
  return save_array_.emplace(counted(slots));
}

}  // namespace tandem::tensor
