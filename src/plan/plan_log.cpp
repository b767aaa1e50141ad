#include "plan/plan_log.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "plan/codec.h"

namespace tandem::plan {
namespace {

constexpr std::string_view kMagic = "TNDMPLAN";
constexpr uint32_t kLogVersion = 1;
constexpr size_t kRecordHeadBytes = 12;  // length u32, checksum u64

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Error io_error(const std::filesystem::path& path, const char* what) {
  return {ErrorCode::kIo,
          fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

/// Length, checksum, payload.
Bytes frame(const Bytes& payload) {
  Writer writer;
  writer(static_cast<uint32_t>(payload.size()), checksum(payload));
  writer.raw(payload.data(), payload.size());
  return writer.take();
}

/// Walks a log's records.
class Walker {
 public:
  explicit Walker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - at_; }

  /// The next payload; empty at the end or at a torn tail. Error: kCorrupt when a damaged record is
  /// not the last thing in the file.
  Result<std::optional<std::span<const std::byte>>> next() {
    using Payload = std::optional<std::span<const std::byte>>;
    if (left() < kRecordHeadBytes) return Payload();
    uint32_t length = 0;
    uint64_t sum = 0;
    std::memcpy(&length, bytes_.data() + at_, sizeof length);
    std::memcpy(&sum, bytes_.data() + at_ + sizeof length, sizeof sum);
    if (left() - kRecordHeadBytes < length) return Payload();
    const auto payload = bytes_.subspan(at_ + kRecordHeadBytes, length);
    if (checksum(payload) != sum) {
      if (left() == kRecordHeadBytes + length) return Payload();
      return Error{ErrorCode::kCorrupt,
                   fmt::format("[plan.log] record at offset {} does not match its checksum", at_)};
    }
    at_ += kRecordHeadBytes + length;
    return Payload(payload);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

Result<std::string> parse_head(std::span<const std::byte> payload) {
  Reader reader(payload);
  std::string magic;
  uint32_t version = 0;
  std::string label;
  reader(magic, version);
  if (reader.failed() || magic != kMagic) {
    return Error{ErrorCode::kCorrupt, "[plan.log] this is not a plan log"};
  }
  if (version != kLogVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("[plan.log] version {}, this build reads {}", version, kLogVersion)};
  }
  reader(label);
  if (const Status read = reader.finish("plan.log"); !read) return read.error();
  return label;
}

Result<LogRecord> parse_record(std::span<const std::byte> payload) {
  Reader reader(payload);
  LogRecord record;
  reader(record.state_hash);
  read_version(reader);
  reader(record.plan);
  if (const Status read = reader.finish("plan.log"); !read) return read.error();
  return record;
}

}  // namespace

Bytes encode_log_head(const std::string& label) {
  Writer writer;
  writer(std::string(kMagic), kLogVersion, label);
  return frame(writer.bytes());
}

Bytes encode_log_record(const LogRecord& record) {
  Writer writer;
  writer(record.state_hash, kFormatVersion, record.plan);
  return frame(writer.bytes());
}

Result<PlanLogWriter> PlanLogWriter::create(const std::filesystem::path& path,
                                            const std::string& label) {
  PlanLogWriter writer;
  writer.file_.reset(std::fopen(path.c_str(), "wb"));
  if (!writer.file_) return io_error(path, "create");
  const Bytes head = encode_log_head(label);
  if (std::fwrite(head.data(), 1, head.size(), writer.file_.get()) != head.size() ||
      std::fflush(writer.file_.get()) != 0) {
    return io_error(path, "write");
  }
  return writer;
}

Status PlanLogWriter::append(const LogRecord& record) {
  const Bytes bytes = encode_log_record(record);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size() &&
      std::fflush(file_.get()) == 0) {
    return {};
  }
  return Error{ErrorCode::kIo, fmt::format("cannot write the plan log: {}", std::strerror(errno))};
}

Result<PlanLog> parse_plan_log(std::span<const std::byte> bytes) {
  Walker walker(bytes);
  const auto head = walker.next();
  if (!head) return head.error();
  if (!*head) return Error{ErrorCode::kCorrupt, "[plan.log] this is not a plan log"};
  auto label = parse_head(**head);
  if (!label) return label.error();
  PlanLog log{.label = *std::move(label), .records = {}};
  for (;;) {
    const auto payload = walker.next();
    if (!payload) return payload.error();
    if (!*payload) break;
    auto record = parse_record(**payload);
    if (!record) return record.error();
    log.records.push_back(*std::move(record));
  }
  log.torn_bytes = walker.left();
  return log;
}

Result<PlanLog> read_plan_log(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_error(path, "read");
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  return parse_plan_log(std::as_bytes(std::span(chars)));
}

}  // namespace tandem::plan
