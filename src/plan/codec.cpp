#include "plan/codec.h"

#include <fmt/format.h>

namespace tandem::plan {

Bytes encode(const StepPlan& plan) {
  Writer writer;
  writer(kFormatVersion, plan);
  return writer.take();
}

Result<StepPlan> decode_plan(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  StepPlan plan;
  read_version(reader);
  reader(plan);
  if (const Status read = reader.finish("plan.codec"); !read) return read.error();
  return plan;
}

void read_version(Reader& reader) {
  uint8_t version = 0;
  reader(version);
  if (reader.failed() || version == kFormatVersion) return;
  reader.fail(ErrorCode::kUnsupported,
              fmt::format("format version {}, this build reads {}", version, kFormatVersion));
}

}  // namespace tandem::plan
