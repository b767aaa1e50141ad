// PlanLog: a file of the plans a rank executed and the state hash after each, so that a lone rank
// can replay them. The format is in FORMAT.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/step_plan.h"
#include "plan/wire.h"

namespace tandem::plan {

/// A plan that was executed. Plans that were issued but never completed are not in a log.
struct LogRecord {
  StepPlan plan;
  uint64_t state_hash = 0;  // after it

  bool operator==(const LogRecord&) const = default;
};

/// Writes a log. One thread. A crash loses at most the records of the last moments.
class PlanLogWriter {
 public:
  /// Makes the file anew. `label` says what ran (the model's fingerprint). Error: kIo.
  static Result<PlanLogWriter> create(const std::filesystem::path& path, const std::string& label);

  /// Appends a record and hands it to the operating system. Error: kIo.
  Status append(const LogRecord& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

/// What a log holds. A torn tail (the writer was killed) is left out and reported.
struct PlanLog {
  std::string label;
  std::vector<LogRecord> records;
  uint64_t torn_bytes = 0;  // after the last whole record
};

/// Errors: kIo, kUnsupported (another version), kCorrupt (not a log, or a damaged record with more
/// behind it).
Result<PlanLog> read_plan_log(const std::filesystem::path& path);
Result<PlanLog> parse_plan_log(std::span<const std::byte> bytes);

/// The file's head, and one record, as bytes.
Bytes encode_log_head(const std::string& label);
Bytes encode_log_record(const LogRecord& record);

}  // namespace tandem::plan
