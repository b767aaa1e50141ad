// GET and DELETE /v1/responses/{id}, its input items, and its end before time.
#include <fmt/format.h>

#include <chrono>

#include "net/sse.h"
#include "protocol/errors.h"
#include "protocol/openai/response_items.h"
#include "protocol/openai/responses_state.h"
#include "protocol/query.h"

namespace tandem::protocol::openai {
namespace {

constexpr std::chrono::seconds kCancelTime{5};  // a cancelled response has to end
constexpr int64_t kMaxSequence = int64_t{1} << 40;

Error bad_state(const std::string& message, ErrorCode code = ErrorCode::kInvalid) {
  return {code, message, "response_id"};
}

/// Ends a response that is being made here.
void end_run(Api& api, BackgroundRun& run) {
  api.service().cancel(run.record().id());
  run.wait_over(kCancelTime);
}

Result<KeptResponse> found(Api& api, const net::Request& request, const std::string& id) {
  if (api.responses() == nullptr) return unknown_response(id);
  return api.responses()->find(request.key_id, id);
}

/// The events after one: of a run as they come, else those that were kept.
Status stream(Api& api, const net::Request& request, const ReplyPtr& reply, const std::string& id) {
  const auto after = query_number(request.query, "starting_after", 0, kMaxSequence, -1);
  if (!after) return after.error();
  const auto first = static_cast<size_t>(*after + 1);
  const auto kept = found(api, request, id);
  if (!kept) return kept.error();
  if (!kept->background || !kept->streamed) {
    return bad_state("only a background response that was begun with stream can be streamed again");
  }
  if (const auto run = api.responses()->runs().find(request.key_id, id)) {
    run->watch(reply, first);
    return {};
  }
  const auto events = api.responses()->kept().events(request.key_id, id, first);
  if (!events) return events.error();
  if (!*events) {
    return bad_state("the events of this response are not kept: ask for it without stream",
                     ErrorCode::kNotFound);
  }
  reply->send({.status = 200, .headers = net::sse_headers(), .body = **events});
  return {};
}

Status show(Api& api, const net::Request& request, const ReplyPtr& reply, const std::string& id) {
  const auto is_stream = query_flag(request.query, "stream");
  if (!is_stream) return is_stream.error();
  if (*is_stream) return stream(api, request, reply, id);
  const auto kept = found(api, request, id);
  if (!kept) return kept.error();
  reply->send(net::json_response(200, dump(kept->response)));
  return {};
}

Status erase(Api& api, const net::Request& request, const ReplyPtr& reply, const std::string& id) {
  if (api.responses() == nullptr) return unknown_response(id);
  ResponsesState& state = *api.responses();
  const auto run = state.runs().find(request.key_id, id);
  if (run) end_run(api, *run);
  const auto erased = state.kept().erase(request.key_id, id);
  if (!erased) return erased.error();
  if (!*erased && !run) return unknown_response(id);
  reply->send(
      net::json_response(200, dump(Json{{"id", id}, {"object", "response"}, {"deleted", true}})));
  return {};
}

Status cancel(Api& api, const net::Request& request, const ReplyPtr& reply, const std::string& id) {
  auto kept = found(api, request, id);
  if (!kept) return kept.error();
  if (!kept->background) return bad_state("only a background response can be cancelled");
  const auto run = api.responses()->runs().find(request.key_id, id);
  if (run) {
    end_run(api, *run);
    kept = run->record();
  } else if (kept->is_open()) {
    // It ended meanwhile, or another server makes it.
    kept = found(api, request, id);
    if (!kept) return kept.error();
    if (kept->is_open()) {
      return bad_state("another server of this state folder makes this response",
                       ErrorCode::kConflict);
    }
  }
  reply->send(net::json_response(200, dump(kept->response)));
  return {};
}

Status list_items(Api& api,
                  const net::Request& request,
                  const ReplyPtr& reply,
                  const std::string& id) {
  const auto page = read_page(request.query);
  if (!page) return page.error();
  const auto kept = found(api, request, id);
  if (!kept) return kept.error();
  Json items = Json::array();
  if (!kept->previous.empty()) {
    auto history = api.responses()->history(request.key_id, kept->previous);
    if (!history && history.error().code != ErrorCode::kNotFound) return history.error();
    // Of a conversation whose beginning is gone the rest is listed.
    if (history) items = std::move(*history);
  }
  for (const Json& item : kept->input) items.push_back(item);
  const auto listed = page_of(items, *page);
  if (!listed) return listed.error();
  reply->send(net::json_response(200, dump(*listed)));
  return {};
}

using Answer = Status (*)(Api&, const net::Request&, const ReplyPtr&, const std::string& id);

void answer(Api& api, const net::Request& request, const ReplyPtr& reply, Answer way) {
  const auto id = request.parameters.find("id");
  const Status done =
      way(api, request, reply, id == request.parameters.end() ? std::string() : id->second);
  if (!done) reply->send(error_response(done.error()));
}

}  // namespace

void show_response(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, request, reply, show);
}

void delete_response(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, request, reply, erase);
}

void cancel_response(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, request, reply, cancel);
}

void list_input_items(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, request, reply, list_items);
}

}  // namespace tandem::protocol::openai
