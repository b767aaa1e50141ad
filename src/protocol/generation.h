// How a wire starts a generation: what is its own is data.
#pragma once

#include <memory>
#include <string_view>

#include "protocol/answer.h"
#include "protocol/handlers.h"
#include "protocol/wire_request.h"

namespace tandem::protocol {

struct Wire {
  const char* endpoint;   // in metrics and lists of requests
  const char* id_prefix;  // of its answers
  Result<WireRequest> (*parse)(std::string_view body, const ParseContext& context);
  std::unique_ptr<AnswerEncoder> (*make_encoder)(AnswerHead head,
                                                 const WireRequest& request,
                                                 const Options& options);
  net::Response (*refuse)(const Error& error);
};

/// Answers the request through `reply`, now (refused) or as events come.
void start_generation(const Wire& wire,
                      Api& api,
                      const net::Request& request,
                      const ReplyPtr& reply);

/// The same of a request that is parsed already, under this id (empty: a new one).
void begin_generation(const Wire& wire,
                      Api& api,
                      const net::Request& request,
                      const ReplyPtr& reply,
                      WireRequest parsed,
                      std::string id = {});

}  // namespace tandem::protocol
