#include "protocol/generation.h"

#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/side_requests.h"
#include "replay/handle.h"

namespace tandem::protocol {
namespace {

/// Empty: it is the work itself, or its client says how urgent it is.
std::string side_kind_of(const Wire& wire,
                         const net::Request& request,
                         const WireRequest& parsed,
                         const Options& options) {
  if (parsed.names_priority) return parsed.request.priority == gen::Priority::kLow ? "asked" : "";
  return options.side_rules ? side_kind(wire.endpoint, request, parsed) : std::string();
}

}  // namespace

void start_generation(const Wire& wire,
                      Api& api,
                      const net::Request& request,
                      const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  auto parsed = wire.parse(request.body, {.model = model, .options = api.options()});
  if (!parsed) {
    api.metrics().refused(wire.endpoint, status_of(parsed.error()));
    return reply->send(wire.refuse(parsed.error()));
  }
  begin_generation(wire, api, request, reply, std::move(*parsed));
}

void begin_generation(const Wire& wire,
                      Api& api,
                      const net::Request& request,
                      const ReplyPtr& reply,
                      WireRequest parsed,
                      std::string id) {
  if (id.empty()) id = new_request_id(wire.id_prefix);
  set_client(api, request, parsed.request);
  for (chat::Warning& warning : api.service().warnings(parsed.request)) {
    parsed.warnings.push_back(std::move(warning));
  }
  const std::string side = side_kind_of(wire, request, parsed, api.options());
  if (!side.empty()) parsed.request.priority = gen::Priority::kLow;
  auto encoder = wire.make_encoder(
      {.id = id,
       .model = parsed.model,
       .fingerprint = api.options().fingerprint,
       .created = unix_seconds(),
       .include_usage = parsed.include_usage,
       .logprobs = parsed.request.logprobs.has_value(),
       .warnings = parsed.warnings,
       .clock = &api.clock(),
       .turn_handle = replay::seal(api.options().signing_key, salt_of(api, request), id)},
      parsed, api.options());
  Call::start(api, request, reply,
              {.id = id,
               .endpoint = wire.endpoint,
               .side = side,
               .wire = std::move(parsed),
               .encoder = std::move(encoder)});
}

}  // namespace tandem::protocol
