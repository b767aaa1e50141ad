// Any bytes: parsing a plan log never crashes, and its whole records encode to the bytes they were.
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "plan/plan_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem::plan;
  const auto log = parse_plan_log(std::as_bytes(std::span(data, size)));
  if (!log) return 0;
  Bytes again = encode_log_head(log->label);
  for (const LogRecord& record : log->records) {
    const Bytes one = encode_log_record(record);
    again.insert(again.end(), one.begin(), one.end());
  }
  TANDEM_CHECK(
      again.size() + log->torn_bytes == size && std::memcmp(again.data(), data, again.size()) == 0,
      "parsing accepted bytes that encoding would not make");
  return 0;
}
