// Counters and histograms in the Prometheus text format.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "chat/service.h"
#include "protocol/request_table.h"

namespace tandem::protocol {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Writes samples; one family's samples go together.
class MetricsText {
 public:
  /// `kind` is counter, gauge or histogram. Starts a family.
  void family(std::string_view name, std::string_view kind, std::string_view help);
  void sample(std::string_view name, const Labels& labels, double value);
  /// One histogram's samples.
  void buckets(std::string_view name, const Histogram& values, const Labels& labels = {});
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What the wires count. Thread-safe.
class Metrics {
 public:
  /// Adds families of another part of the process, such as the engine. Called at every scrape, from
  /// a worker thread.
  using Collector = std::function<void(MetricsText&)>;

  Metrics();

  void add(Collector collector);
  void ended(const RequestRecord& record);
  void refused(const std::string& endpoint, int status);
  void ignored(const std::vector<std::string>& fields);
  void warned(const std::vector<chat::Warning>& warnings);

  /// `running` is the number of requests in flight.
  std::string render(size_t running) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Collector> collectors_;
  std::map<std::pair<std::string, std::string>, uint64_t> requests_;  // (endpoint, outcome)
  std::map<std::pair<std::string, int>, uint64_t> refused_;           // (endpoint, status)
  std::map<std::string, uint64_t> ignored_;
  std::map<std::string, uint64_t> warned_;  // by code
  std::map<std::string, uint64_t> guarded_;
  std::map<std::string, uint64_t> sides_;  // by kind
  uint64_t prompt_tokens_ = 0;
  uint64_t cached_tokens_ = 0;
  uint64_t completion_tokens_ = 0;
  uint64_t reasoning_tokens_ = 0;
  uint64_t broken_calls_ = 0;
  Histogram queue_;
  Histogram prefill_;
  Histogram first_token_;
  Histogram decode_per_token_;
  Histogram whole_;
};

}  // namespace tandem::protocol
