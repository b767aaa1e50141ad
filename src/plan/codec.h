// StepPlan to bytes and back. The format is in FORMAT.md.
#pragma once

#include <span>

#include "base/result.h"
#include "plan/step_plan.h"
#include "plan/wire.h"

namespace tandem::plan {

/// The version byte of plans and frames: both change together.
inline constexpr uint8_t kFormatVersion = 6;

/// Canonical: equal plans give equal bytes.
Bytes encode(const StepPlan& plan);

/// Accepts only what encode() makes: decode_plan(b) succeeds with p exactly when encode(p) == b.
/// Errors: kUnsupported (another version), kCorrupt (with offsets).
Result<StepPlan> decode_plan(std::span<const std::byte> bytes);

// Shared with frames.cpp.
template <>
inline constexpr uint8_t kLastEnumerator<NumericClass> = 1;
template <>
inline constexpr uint8_t kLastEnumerator<gen::Pooling> = 1;

void fields(auto& archive, IsOf<PageCopy> auto& copy) { archive(copy.from, copy.to); }

void fields(auto& archive, IsOf<StateSave> auto& save) { archive(save.tokens, save.slot); }

void fields(auto& archive, IsOf<Draw> auto& draw) {
  archive(draw.temperature, draw.top_p, draw.top_k, draw.min_p, draw.seed, draw.choice);
}

void fields(auto& archive, IsOf<IndexReuse> auto& reuse) { archive(reuse.most_age, reuse.from); }

void fields(auto& archive, IsOf<Row> auto& row) {
  archive(row.request, row.numeric_class, row.start, row.tokens);
  archive.page_table(row.pages);
  archive(row.window_start);
  archive.page_table(row.window_pages);
  archive(row.state, row.saves, row.wants_logits, row.draw, row.reuse, row.pooling);
}

void fields(auto& archive, IsOf<StepPlan> auto& plan) {
  archive(plan.epoch, plan.sequence, plan.copies, plan.window_copies, plan.rows);
}

/// Reads the version byte and fails the reader when it is not ours.
void read_version(Reader& reader);

}  // namespace tandem::plan
