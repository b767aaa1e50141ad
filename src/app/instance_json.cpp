#include "app/instance_json.h"

#include <string>

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const plan::PoolFigures& pool) {
  return {{"used", pool.referenced}, {"cached", pool.cached}, {"free", pool.free}};
}

/// Window pages and states only of models that have them.
Json to_json(const plan::EngineFigures& engine, uint32_t page_tokens) {
  Json out = {{"running", engine.running},
              {"waiting", engine.waiting},
              {"paused", engine.paused},
              {"pages", to_json(engine.pages)}};
  out["pages"]["tokens"] = page_tokens;
  if (engine.window_pages.total() > 0) {
    out["window_pages"] = to_json(engine.window_pages);
    out["window_pages"]["left"] = engine.totals.window_pages_left;
  }
  if (engine.states.total() > 0) out["states"] = to_json(engine.states);
  return out;
}

}  // namespace

Json instance_json(const control::InstanceSnapshot& instance, const topology::SplitChoice& split) {
  Json ranks = Json::array();
  for (const control::RankSnapshot& rank : instance.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"state", control::name(rank.state)},
                     {"pid", rank.pid},
                     {"memory",
                      {{"weight_bytes", rank.memory.weight_bytes},
                       {"cache_bytes", rank.memory.cache_bytes},
                       {"resident_bytes", rank.memory.resident_bytes},
                       {"device_bytes", rank.device_bytes}}},
                     {"steps", rank.steps},
                     {"starts", rank.starts}});
  }
  return {{"name", instance.name},
          {"state", control::name(instance.state)},
          {"epoch", instance.epoch},
          {"split", name(split.split)},
          {"split_reason", split.reason},
          {"draining", instance.is_draining},
          {"healthy", instance.is_healthy},
          {"trouble", instance.trouble},
          {"loading", instance.loading},
          {"lost_epochs", instance.lost_epochs},
          {"engine", to_json(instance.figures.engine, instance.page_tokens)},
          {"ranks", ranks}};
}

}  // namespace tandem::app
