#include "protocol/generation.h"

#include "protocol/call.h"
#include "protocol/errors.h"
#include "replay/handle.h"

namespace tandem::protocol {

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
  for (chat::Warning& warning : api.service().warnings(parsed.request)) {
    parsed.warnings.push_back(std::move(warning));
  }
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
               .wire = std::move(parsed),
               .encoder = std::move(encoder)});
}

}  // namespace tandem::protocol
