#include "app/front.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/instance_metrics.h"
#include "app/version.h"

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

Json to_json(const control::InstanceSnapshot& instance, const topology::SplitChoice& split) {
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

/// GET /v1/status: the model, its instances with ranks and pids, running requests.
net::Response status(Session& session, protocol::Api& api) {
  const chat::ModelInfo model = session.service().model();
  const Json body = {
      {"model", model.id},
      {"max_context", model.max_context},
      {"version", kVersion},
      {"instances", Json::array({to_json(session.generator().snapshot(), session.split())})},
      {"requests", Json(api.table().to_json())["active"]}};
  return net::json_response(200, body.dump());
}

/// Why the instance cannot serve now.
std::optional<std::string> unready_reason(Session& session) {
  const control::InstanceSnapshot instance = session.generator().snapshot();
  if (instance.state == control::InstanceState::kReady && instance.is_healthy &&
      !instance.is_draining)
    return std::nullopt;
  if (instance.is_draining) return "draining";
  if (instance.state == control::InstanceState::kReady)
    return "no token was delivered for too long";
  return fmt::format("instance is {}{}{}", control::name(instance.state),
                     instance.trouble.empty() ? "" : ": ", instance.trouble);
}

}  // namespace

Result<std::unique_ptr<Front>> Front::start(Session& session,
                                            protocol::Options options,
                                            net::ServerOptions server) {
  std::unique_ptr<Front> front(new Front(session, std::move(options)));
  net::Router router;
  front->api_.add_routes(router);
  protocol::add_v1(router,
                   {.method = "GET",
                    .pattern = "/status",
                    .handler = [raw = front.get()](const net::Request&,
                                                   const std::shared_ptr<net::Reply>& reply) {
                      reply->send(status(raw->session_, raw->api_));
                    }});
  auto listening = net::Server::start(std::move(server), std::move(router));
  if (!listening) return listening.error();
  front->server_ = std::move(*listening);
  return front;
}

Front::Front(Session& session, protocol::Options options)
    : session_(session), api_(session.service(), clock_, std::move(options), [&session] {
        return unready_reason(session);
      }) {
  api_.metrics().add([&session](protocol::MetricsText& out) {
    write_metrics(out, {session.generator().snapshot()});
  });
}

}  // namespace tandem::app
