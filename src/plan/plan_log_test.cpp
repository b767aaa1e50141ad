#include "plan/plan_log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "plan/samples_test.h"

namespace tandem::plan {
namespace {

LogRecord record(uint64_t sequence) {
  StepPlan plan = samples::plan();
  plan.sequence = sequence;
  return {plan, sequence * 31};
}

Bytes log_of(int records) {
  Bytes bytes = encode_log_head("model");
  for (int i = 0; i < records; ++i) {
    const Bytes one = encode_log_record(record(static_cast<uint64_t>(i)));
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

TEST_CASE("plan log: what is written to a file is read back") {
  const auto path =
      std::filesystem::temp_directory_path() / ("tandem-plan-log-" + std::to_string(::getpid()));
  {
    auto writer = PlanLogWriter::create(path, "model");
    REQUIRE(writer);
    for (uint64_t i = 0; i < 5; ++i) REQUIRE(writer->append(record(i)));
  }
  const auto log = read_plan_log(path);
  std::filesystem::remove(path);
  REQUIRE(log);
  CHECK(log->label == "model");
  CHECK(log->torn_bytes == 0);
  REQUIRE(log->records.size() == 5);
  for (uint64_t i = 0; i < 5; ++i) CHECK(log->records[i] == record(i));
  CHECK(read_plan_log(path).error().code == ErrorCode::kIo);
}

TEST_CASE("plan log: a tail torn anywhere costs only the torn record") {
  const Bytes two = log_of(2);
  const Bytes three = log_of(3);
  for (size_t size = two.size(); size < three.size(); ++size) {
    CAPTURE(size);
    const auto log = parse_plan_log(std::span(three).first(size));
    REQUIRE(log);
    CHECK(log->records.size() == 2);
    CHECK(log->torn_bytes == size - two.size());
  }
}

TEST_CASE("plan log: damage before the last record is corrupt, in the last it is a torn tail") {
  const Bytes good = log_of(3);
  const size_t head = encode_log_head("model").size();
  const size_t last = log_of(2).size();
  for (size_t at = head + 4; at < good.size(); ++at) {
    const size_t in_record = (at - head) % encode_log_record(record(0)).size();
    if (in_record < 4) continue;  // a damaged length may look like either
    CAPTURE(at);
    Bytes bytes = good;
    bytes[at] ^= std::byte{1};
    const auto log = parse_plan_log(bytes);
    if (at < last) {
      REQUIRE_FALSE(log);
      CHECK(log.error().code == ErrorCode::kCorrupt);
    } else {
      REQUIRE(log);
      CHECK(log->records.size() == 2);
    }
  }
}

TEST_CASE("plan log: other files and versions are refused") {
  CHECK(parse_plan_log({}).error().code == ErrorCode::kCorrupt);
  const Bytes zeros(1000);
  CHECK(parse_plan_log(zeros).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("plan log: the bytes of plan version 6 are those of the golden file") {
  const Bytes bytes = log_of(2);
  std::ifstream in(TANDEM_SOURCE_DIR "/src/plan/testdata/plan_log_v6.bin", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  const std::string actual(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(golden == actual);
  if (golden != actual) std::ofstream("plan_log_v6.bin.actual", std::ios::binary) << actual;
}

}  // namespace
}  // namespace tandem::plan
