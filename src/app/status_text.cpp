#include "app/status_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

/// A member, or null: also of what is no object.
const Json& member(const Json& of, const char* name) {
  static const Json kNull;
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found == of.end() ? kNull : *found;
}

uint64_t number(const Json& of, const char* name) {
  const Json& value = member(of, name);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

std::string text(const Json& of, const char* name) {
  const Json& value = member(of, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

uint64_t mib(const Json& of, const char* name) { return number(of, name) >> 20; }

std::string rank_line(const Json& rank) {
  const Json& memory = member(rank, "memory");
  return fmt::format(
      "  rank {}: {}, pid {}, {} steps; {} MiB resident, {} MiB of weights, {} MiB of cache pool\n",
      number(rank, "rank"), text(rank, "state"), number(rank, "pid"), number(rank, "steps"),
      mib(memory, "resident_bytes"), mib(memory, "weight_bytes"), mib(memory, "cache_bytes"));
}

std::string instance_lines(const Json& instance) {
  const Json& ranks = member(instance, "ranks");
  std::string out = fmt::format(
      "instance {}: {}, epoch {} ({} lost), {} split over {} rank{}\n", text(instance, "name"),
      text(instance, "state"), number(instance, "epoch"), number(instance, "lost_epochs"),
      text(instance, "split"), ranks.size(), ranks.size() == 1 ? "" : "s");
  const std::string loading = text(instance, "loading");
  if (!loading.empty()) out += fmt::format("  loading: {}\n", loading);
  const std::string trouble = text(instance, "trouble");
  if (!trouble.empty()) out += fmt::format("  last trouble: {}\n", trouble);
  for (const Json& rank : ranks) out += rank_line(rank);
  const Json& engine = member(instance, "engine");
  const Json& pages = member(engine, "pages");
  out += fmt::format("  cache pages of {} tokens: {} used, {} kept for reuse, {} free\n",
                     number(pages, "tokens"), number(pages, "used"), number(pages, "cached"),
                     number(pages, "free"));
  return out + fmt::format("  engine: {} running, {} waiting, {} paused\n",
                           number(engine, "running"), number(engine, "waiting"),
                           number(engine, "paused"));
}

std::string request_line(const Json& request) {
  const std::string phase = text(request, "phase");
  return fmt::format("  {} {}: {} of {} prompt tokens, {} cached, {} emitted\n",
                     text(request, "id"), phase.empty() ? text(request, "state") : phase,
                     number(request, "prefilled_tokens"), number(request, "prompt_tokens"),
                     number(request, "cached_tokens"), number(request, "emitted_tokens"));
}

}  // namespace

std::string status_text(const std::string& url, const Json& status) {
  std::string out = fmt::format("{} serves {}, context {} tokens\n", url, text(status, "model"),
                                number(status, "max_context"));
  for (const Json& instance : member(status, "instances")) out += instance_lines(instance);
  const Json& requests = member(status, "requests");
  out += fmt::format("requests running: {}\n", requests.size());
  for (const Json& request : requests) out += request_line(request);
  return out;
}

}  // namespace tandem::app
