#include "protocol/api.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "protocol/anthropic/errors.h"
#include "protocol/handlers.h"
#include "protocol/ollama/errors.h"
#include "protocol/openai/responses_state.h"

namespace tandem::protocol {
namespace {

void write_state(MetricsText& out, store::Store& store) {
  out.family("tandem_state_lost_writes_total", "counter",
             "Writes of state that failed, or waited too long");
  out.sample("tandem_state_lost_writes_total", {},
             static_cast<double>(store.queue().failed() + store.queue().dropped()));
  out.family("tandem_state_damaged_total", "counter",
             "Damaged state files that were set aside, with all they kept");
  out.sample("tandem_state_damaged_total", {}, static_cast<double>(store.database().damaged()));
  const std::vector<store::TableFigures> tables = store.figures();
  out.family("tandem_state_entries", "gauge", "What is kept on disk, by kind");
  for (const store::TableFigures& table : tables) {
    out.sample("tandem_state_entries", {{"kind", table.name}}, static_cast<double>(table.entries));
  }
  out.family("tandem_state_bytes", "gauge", "Its bytes");
  for (const store::TableFigures& table : tables) {
    out.sample("tandem_state_bytes", {{"kind", table.name}}, static_cast<double>(table.bytes));
  }
}

}  // namespace

void add_v1(net::Router& router, net::Route route) {
  router.add(route);
  route.pattern = "/v1" + route.pattern;
  router.add(std::move(route));
}

Api::Api(
    chat::Service& service, const Clock& clock, Options options, Probe probe, store::Store* store)
    : service_(service),
      clock_(clock),
      options_(std::move(options)),
      probe_(std::move(probe)),
      store_(store),
      table_(clock, [this](const RequestRecord& record) { metrics_.ended(record); }) {
  if (!store_) return;
  responses_ = std::make_unique<openai::ResponsesState>(*store_, options_.state);
  metrics_.add([this](MetricsText& out) { write_state(out, *store_); });
}

/// Writes that wait may still answer requests.
Api::~Api() {
  if (store_) store_->queue().settle();
}

void Api::add_routes(net::Router& router) {
  using Function = void (*)(Api&, const net::Request&, const ReplyPtr&);
  const auto route = [&](const char* method, const char* path, net::Access access,
                         Function handler) -> net::Route {
    return {.method = method,
            .pattern = path,
            .handler = [this, handler](const net::Request& request,
                                       const ReplyPtr& reply) { handler(*this, request, reply); },
            .access = access};
  };
#define X(method, path, access, handler) \
  router.add(route(#method, path, net::Access::k##access, handler));
#define V1(method, path, access, handler) \
  add_v1(router, route(#method, path, net::Access::k##access, handler));
#include "protocol/routes.inc"
#undef X
#undef V1
  // Clients with another base URL ask below /v1 for what is not there.
  for (const std::string base : {"", "/v1"}) {
    router.restate_below(base + "/api", ollama::restate_fault);
    router.restate_below(base + "/messages", anthropic::restate_fault);
  }
}

std::optional<std::string> Api::unready_reason() const {
  if (probe_) {
    if (auto reason = probe_()) return reason;
  }
  const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(table_.silence());
  if (silence <= options_.stall) return std::nullopt;
  return fmt::format("{} requests are running and nothing was delivered for {:.1f} s",
                     table_.running(), std::chrono::duration<double>(silence).count());
}

}  // namespace tandem::protocol
