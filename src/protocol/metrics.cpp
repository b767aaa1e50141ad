#include "protocol/metrics.h"

#include <fmt/format.h>

#include <chrono>

namespace tandem::protocol {
namespace {

constexpr size_t kMaxIgnoredNames = 64;
constexpr size_t kMaxNameBytes = 40;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out.push_back(c);
  }
  return out;
}

}  // namespace

void MetricsText::family(std::string_view name, std::string_view kind, std::string_view help) {
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
}

void MetricsText::sample(std::string_view name, const Labels& labels, double value) {
  text_ += name;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ +=
        fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped(labels[i].second));
  }
  if (!labels.empty()) text_ += '}';
  text_ += fmt::format(" {}\n", value);
}

void MetricsText::buckets(std::string_view name, const Histogram& values, const Labels& labels) {
  const std::string bucket = fmt::format("{}_bucket", name);
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  uint64_t total = 0;
  for (size_t i = 0; i < values.counts().size(); ++i) {
    total += values.counts()[i];
    const bool last = i == values.bounds().size();
    with_bound.back().second = last ? "+Inf" : fmt::format("{}", values.bounds()[i]);
    sample(bucket, with_bound, static_cast<double>(total));
  }
  sample(fmt::format("{}_sum", name), labels, values.sum());
  sample(fmt::format("{}_count", name), labels, static_cast<double>(total));
}

Metrics::Metrics()
    : queue_(long_times()),
      prefill_(long_times()),
      first_token_(long_times()),
      decode_per_token_(token_times()),
      whole_(long_times()) {}

void Metrics::add(Collector collector) {
  const std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collector));
}

void Metrics::ended(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  ++requests_[{record.endpoint, name(record.outcome)}];
  prompt_tokens_ += record.prompt_tokens;
  cached_tokens_ += record.cached_tokens;
  completion_tokens_ += record.emitted_tokens;
  reasoning_tokens_ += record.reasoning_tokens;
  broken_calls_ += record.broken_calls;
  if (!record.side.empty()) ++sides_[record.side];
  for (const chat::Guard guard : record.guards) ++guarded_[name(guard)];
  if (record.started) queue_.add(seconds(*record.started - record.submitted));
  if (record.started && record.first_token) {
    prefill_.add(seconds(*record.first_token - *record.started));
  }
  if (record.first_token) first_token_.add(seconds(*record.first_token - record.submitted));
  if (!record.ended) return;
  whole_.add(seconds(*record.ended - record.submitted));
  if (record.first_token && record.emitted_tokens > record.choices) {
    const double steps = static_cast<double>(record.emitted_tokens) / record.choices - 1;
    decode_per_token_.add(seconds(*record.ended - *record.first_token) / steps);
  }
}

void Metrics::refused(const std::string& endpoint, int status) {
  const std::lock_guard lock(mutex_);
  ++refused_[{endpoint, status}];
}

/// Names come from clients, so their number is bounded.
void Metrics::ignored(const std::vector<std::string>& fields) {
  const std::lock_guard lock(mutex_);
  for (const std::string& field : fields) {
    std::string name = shortened(lossy_utf8(field), kMaxNameBytes);
    if (!ignored_.contains(name) && ignored_.size() >= kMaxIgnoredNames) name = "(others)";
    ++ignored_[name];
  }
}

void Metrics::warned(const std::vector<chat::Warning>& warnings) {
  const std::lock_guard lock(mutex_);
  for (const chat::Warning& warning : warnings) ++warned_[warning.code];
}

std::string Metrics::render(size_t running) const {
  MetricsText out;
  std::vector<Collector> collectors;
  {
    const std::lock_guard lock(mutex_);
    out.family("tandem_requests_total", "counter", "Requests that ended, by how.");
    for (const auto& [key, count] : requests_) {
      out.sample("tandem_requests_total", {{"endpoint", key.first}, {"outcome", key.second}},
                 static_cast<double>(count));
    }
    out.family("tandem_requests_refused_total", "counter", "Requests refused, by HTTP status.");
    for (const auto& [key, count] : refused_) {
      out.sample("tandem_requests_refused_total",
                 {{"endpoint", key.first}, {"status", std::to_string(key.second)}},
                 static_cast<double>(count));
    }
    out.family("tandem_ignored_fields_total", "counter", "Request fields nobody knows, by name.");
    for (const auto& [field, count] : ignored_) {
      out.sample("tandem_ignored_fields_total", {{"field", field}}, static_cast<double>(count));
    }
    out.family("tandem_warnings_total", "counter",
               "What of requests had no effect, as their answers say.");
    for (const auto& [code, count] : warned_) {
      out.sample("tandem_warnings_total", {{"code", code}}, static_cast<double>(count));
    }
    out.family("tandem_guards_total", "counter", "Answers that a guard acted on, by guard.");
    for (const auto& [guard, count] : guarded_) {
      out.sample("tandem_guards_total", {{"guard", guard}}, static_cast<double>(count));
    }
    out.family("tandem_side_requests_total", "counter",
               "Requests beside the work, which ran low, by kind.");
    for (const auto& [kind, count] : sides_) {
      out.sample("tandem_side_requests_total", {{"kind", kind}}, static_cast<double>(count));
    }
    out.family("tandem_requests_running", "gauge", "Requests in flight.");
    out.sample("tandem_requests_running", {}, static_cast<double>(running));
    const struct {
      const char* name;
      uint64_t value;
      const char* help;
    } totals[] = {
        {"tandem_prompt_tokens_total", prompt_tokens_, "Prompt tokens of ended requests."},
        {"tandem_cached_tokens_total", cached_tokens_, "Prompt tokens that were reused."},
        {"tandem_completion_tokens_total", completion_tokens_, "Tokens drawn."},
        {"tandem_reasoning_tokens_total", reasoning_tokens_, "Tokens drawn inside thinking."},
        {"tandem_broken_calls_total", broken_calls_,
         "Tool calls that could not be made valid: text, or closed early."},
    };
    for (const auto& total : totals) {
      out.family(total.name, "counter", total.help);
      out.sample(total.name, {}, static_cast<double>(total.value));
    }
    const struct {
      const char* name;
      const Histogram& values;
      const char* help;
    } times[] = {
        {"tandem_queue_seconds", queue_, "From submission to the start of prefill."},
        {"tandem_prefill_seconds", prefill_, "From the start of prefill to the first token."},
        {"tandem_first_token_seconds", first_token_, "From submission to the first token."},
        {"tandem_decode_token_seconds", decode_per_token_, "Mean time between a request's tokens."},
        {"tandem_request_seconds", whole_, "From submission to the end."},
    };
    for (const auto& time : times) {
      out.family(time.name, "histogram", time.help);
      out.buckets(time.name, time.values);
    }
    collectors = collectors_;
  }
  for (const Collector& collect : collectors) collect(out);
  return out.text();
}

}  // namespace tandem::protocol
