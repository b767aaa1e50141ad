#include "protocol/api.h"

#include <fmt/format.h>

#include <chrono>

#include "protocol/handlers.h"
#include "protocol/openai/responses_state.h"

namespace tandem::protocol {

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
  if (store_) responses_ = std::make_unique<openai::ResponsesState>(*store_, options_.state);
}

Api::~Api() = default;

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
