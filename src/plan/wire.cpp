#include "plan/wire.h"

#include <fmt/format.h>

#include <limits>

namespace tandem::plan {

void Writer::page_table(const std::vector<uint32_t>& pages) {
  const size_t count_at = out_.size();
  uint32_t runs = 0;
  put(runs);
  for (size_t i = 0; i < pages.size();) {
    size_t end = i + 1;
    while (end < pages.size() && pages[end - 1] != std::numeric_limits<uint32_t>::max() &&
           pages[end] == pages[end - 1] + 1) {
      ++end;
    }
    put(pages[i]);
    put(static_cast<uint32_t>(end - i));
    ++runs;
    i = end;
  }
  std::memcpy(out_.data() + count_at, &runs, sizeof runs);
}

void Reader::page_table(std::vector<uint32_t>& pages) {
  pages.clear();
  uint32_t runs = 0;
  get(runs);
  uint64_t expected = std::numeric_limits<uint64_t>::max();  // the id that would extend the run
  for (uint32_t i = 0; i < runs && !failed(); ++i) {
    uint32_t first = 0;
    uint32_t length = 0;
    get(first);
    get(length);
    if (failed()) return;
    const uint64_t end = uint64_t{first} + length;
    pages_ += length;
    if (length == 0 || first == expected || end > uint64_t{1} << 32 || pages_ > kMaxPages) {
      fail(ErrorCode::kCorrupt,
           fmt::format("page run {} is not allowed: {} pages from id {}, {} named in all", i,
                       length, first, pages_));
      return;
    }
    for (uint64_t page = first; page < end; ++page) pages.push_back(static_cast<uint32_t>(page));
    expected = end;
  }
}

void Reader::fail(ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message)};
}

Status Reader::finish(std::string_view what) {
  if (!error_ && left() != 0) {
    fail(ErrorCode::kCorrupt, fmt::format("{} of {} bytes are left over", left(), in_.size()));
  }
  if (!error_) return {};
  return Error{error_->code, fmt::format("[{}] {}", what, error_->message)};
}

const std::byte* Reader::need(size_t bytes) {
  if (failed()) return nullptr;
  if (bytes > left()) {
    fail(ErrorCode::kCorrupt,
         fmt::format("{} bytes needed at offset {}, {} left", bytes, at_, left()));
    return nullptr;
  }
  const std::byte* from = in_.data() + at_;
  at_ += bytes;
  return from;
}

uint8_t Reader::get_bounded(uint8_t last) {
  uint8_t value = 0;
  get(value);
  if (value <= last) return value;
  fail(ErrorCode::kCorrupt,
       fmt::format("value {} at offset {}, at most {} allowed", value, at_ - 1, last));
  return 0;
}

void Reader::get_string(std::string& value) {
  value.clear();
  uint32_t size = 0;
  get(size);
  if (const std::byte* from = need(size)) value.assign(reinterpret_cast<const char*>(from), size);
}

}  // namespace tandem::plan
