#include "app/status_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "app/server_json.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

uint64_t mib(const Json& of, const char* name) { return number_of(of, name) >> 20; }

std::string rank_line(const Json& rank) {
  const Json& memory = member_of(rank, "memory");
  return fmt::format(
      "  rank {}: {}, pid {}, {} steps; {} MiB resident, {} MiB of weights, {} MiB of cache pool\n",
      number_of(rank, "rank"), text_of(rank, "state"), number_of(rank, "pid"),
      number_of(rank, "steps"), mib(memory, "resident_bytes"), mib(memory, "weight_bytes"),
      mib(memory, "cache_bytes"));
}

std::string pool_text(const Json& pool) {
  return fmt::format("{} used, {} kept for reuse, {} free", number_of(pool, "used"),
                     number_of(pool, "cached"), number_of(pool, "free"));
}

/// Of models that have them.
std::string side_lines(const Json& engine) {
  std::string out;
  const Json& windows = member_of(engine, "window_pages");
  if (!windows.empty())
    out += fmt::format("  window pages: {}, {} left behind\n", pool_text(windows),
                       number_of(windows, "left"));
  const Json& states = member_of(engine, "states");
  if (!states.empty()) out += fmt::format("  recurrent states: {}\n", pool_text(states));
  return out;
}

std::string instance_lines(const Json& instance) {
  if (member_of(instance, "scripted") == true)
    return fmt::format("instance {}: {}, plays a script\n", text_of(instance, "name"),
                       text_of(instance, "state"));
  const Json& ranks = member_of(instance, "ranks");
  std::string out = fmt::format(
      "instance {}: {}, epoch {} ({} lost), {} split over {} rank{}\n", text_of(instance, "name"),
      text_of(instance, "state"), number_of(instance, "epoch"), number_of(instance, "lost_epochs"),
      text_of(instance, "split"), ranks.size(), ranks.size() == 1 ? "" : "s");
  const std::string loading = text_of(instance, "loading");
  if (!loading.empty()) out += fmt::format("  loading: {}\n", loading);
  const std::string trouble = text_of(instance, "trouble");
  if (!trouble.empty()) out += fmt::format("  last trouble: {}\n", trouble);
  for (const Json& rank : ranks) out += rank_line(rank);
  const Json& engine = member_of(instance, "engine");
  const Json& pages = member_of(engine, "pages");
  out +=
      fmt::format("  cache pages of {} tokens: {}\n", number_of(pages, "tokens"), pool_text(pages));
  out += side_lines(engine);
  return out + fmt::format("  engine: {} running, {} waiting, {} paused\n",
                           number_of(engine, "running"), number_of(engine, "waiting"),
                           number_of(engine, "paused"));
}

std::string request_line(const Json& request) {
  const std::string phase = text_of(request, "phase");
  return fmt::format("  {} {}: {} of {} prompt tokens, {} cached, {} emitted\n",
                     text_of(request, "id"), phase.empty() ? text_of(request, "state") : phase,
                     number_of(request, "prefilled_tokens"), number_of(request, "prompt_tokens"),
                     number_of(request, "cached_tokens"), number_of(request, "emitted_tokens"));
}

}  // namespace

std::string status_text(const std::string& url, const Json& status) {
  std::string out = fmt::format("{} serves {}, context {} tokens\n", url, text_of(status, "model"),
                                number_of(status, "max_context"));
  for (const Json& instance : member_of(status, "instances")) out += instance_lines(instance);
  const Json& requests = member_of(status, "requests");
  out += fmt::format("requests running: {}\n", requests.size());
  for (const Json& request : requests) out += request_line(request);
  return out;
}

}  // namespace tandem::app
