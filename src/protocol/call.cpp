#include "protocol/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "net/sse.h"
#include "protocol/errors.h"

namespace tandem::protocol {
namespace {

RequestRecord make_record(const Call::Parts& parts, const net::Request& request) {
  RequestRecord record;
  record.id = parts.id;
  record.endpoint = parts.endpoint;
  record.model = parts.wire.model;
  record.client = request.key_id.empty() ? request.peer : request.key_id;
  record.peer = request.peer;
  record.stream = parts.wire.stream;
  record.choices = parts.wire.request.choices;
  record.created = unix_seconds();
  return record;
}

void refuse(Api& api, const ReplyPtr& reply, const std::string& endpoint, const Error& error) {
  api.metrics().refused(endpoint, status_of(error));
  reply->send(error_response(error));
}

net::Headers with_id(net::Headers headers, const std::string& id) {
  headers.push_back({"X-Request-Id", id});
  return headers;
}

}  // namespace

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string new_request_id(const std::string& prefix) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

chat::Usage total_usage(const std::vector<chat::Usage>& choices) {
  chat::Usage total = choices.empty() ? chat::Usage{} : choices.front();
  for (size_t i = 1; i < choices.size(); ++i) {
    total.cached_tokens = std::min(total.cached_tokens, choices[i].cached_tokens);
    total.completion_tokens += choices[i].completion_tokens;
    total.reasoning_tokens += choices[i].reasoning_tokens;
  }
  return total;
}

Call::Call(Api& api, ReplyPtr reply, const Parts& parts, std::unique_ptr<AnswerEncoder> encoder)
    : api_(api),
      id_(parts.id),
      stream_(parts.wire.stream),
      reply_(std::move(reply)),
      encoder_(std::move(encoder)),
      answers_(parts.wire.request.choices),
      usages_(parts.wire.request.choices) {}

void Call::start(Api& api, const net::Request& request, const ReplyPtr& reply, Parts parts) {
  api.metrics().ignored(parts.wire.ignored);
  if (!api.table().open(make_record(parts, request))) {
    return refuse(api, reply, parts.endpoint, {ErrorCode::kConflict, "the request's id is in use"});
  }
  chat::Request& wanted = parts.wire.request;
  wanted.id = parts.id;
  wanted.client = request.key_id.empty() ? request.peer : request.key_id;
  if (api.options().separate_clients) wanted.salt = request.key_id;
  // Shared with the sink, which the service keeps until the last event.
  const auto call = std::make_shared<Call>(api, reply, parts, std::move(parts.encoder));
  const auto tokens = api.service().submit(
      std::move(wanted), [call](chat::Event event) { call->receive(std::move(event)); });
  if (!tokens) {
    api.table().forget(parts.id);
    return refuse(api, reply, parts.endpoint, tokens.error());
  }
  api.table().accept(parts.id, *tokens);
  call->accepted();
}

/// Opens the stream and handles what came before.
void Call::accepted() {
  const std::weak_ptr<Call> weak = weak_from_this();
  const ReplyPtr reply = reply_;
  {
    const std::lock_guard lock(mutex_);
    const auto period = api_.options().keep_alive;
    if (stream_) {
      reply_->start(200, with_id(net::sse_headers(), id_));
      if (period.count() > 0) {
        reply_->keep_alive(period, [weak] {
          const auto call = weak.lock();
          return call ? call->keepalive_text() : std::string();
        });
      }
    }
    open_ = true;
    for (const chat::Event& event : early_) handle(event);
    early_.clear();
  }
  cancel_rest();
  // Outside the lock: it may call back at once.
  reply->on_closed([weak] {
    if (const auto call = weak.lock()) call->client_left();
  });
}

void Call::client_left() { api_.service().cancel(id_); }

void Call::receive(chat::Event event) {
  api_.table().note(id_, event);
  {
    const std::lock_guard lock(mutex_);
    if (open_) {
      handle(event);
    } else {
      early_.push_back(std::move(event));
    }
  }
  cancel_rest();
}

/// Not under the lock, so that a service may answer a cancel at once.
void Call::cancel_rest() {
  {
    const std::lock_guard lock(mutex_);
    if (!rest_is_useless_) return;
    rest_is_useless_ = false;
  }
  api_.service().cancel(id_);
}

std::string Call::keepalive_text() {
  const std::lock_guard lock(mutex_);
  if (talking_ || !progress_) return net::encode_sse_comment("keepalive");
  return net::encode_sse_comment(fmt::format("keepalive {}/{}", progress_->done, progress_->total));
}

void Call::handle(const chat::Event& event) {
  if (over_ || event.choice >= answers_.size()) return;
  if (const auto* progress = std::get_if<chat::Progress>(&event.body)) {
    progress_ = *progress;
    if (!stream_ || talking_ || api_.options().keep_alive.count() <= 0) return;
    reply_->write(
        net::encode_sse_comment(fmt::format("keepalive {}/{}", progress->done, progress->total)));
    return;
  }
  const auto* delta = std::get_if<chat::Delta>(&event.body);
  if (!delta) return handle_last(event);
  talking_ = true;
  if (stream_) {
    reply_->write(encoder_->delta(event.choice, *delta));
    return;
  }
  Answer& answer = answers_[event.choice];
  (delta->channel == chat::Channel::kText ? answer.text : answer.thinking) += delta->text;
  answer.logprobs.insert(answer.logprobs.end(), delta->logprobs.begin(), delta->logprobs.end());
}

void Call::handle_last(const chat::Event& event) {
  if (const auto* failed = std::get_if<chat::Failed>(&event.body)) return fail(failed->error);
  const auto& end = std::get<chat::End>(event.body);
  answers_[event.choice].end = end;
  usages_[event.choice] = end.usage;
  if (stream_) reply_->write(encoder_->end(event.choice, end));
  if (++ended_ == answers_.size()) finish();
}

void Call::finish() {
  over_ = true;
  const chat::Usage total = total_usage(usages_);
  if (stream_) {
    reply_->write(encoder_->close(total));
    reply_->finish();
  } else {
    net::Response response = net::json_response(200, encoder_->whole(answers_, total));
    response.headers = with_id(std::move(response.headers), id_);
    reply_->send(std::move(response));
  }
  reply_.reset();
}

/// The first failure of a choice ends the reply; an error is never text of the assistant.
void Call::fail(const Error& error) {
  over_ = true;
  rest_is_useless_ = ended_ + 1 < answers_.size();
  if (stream_) {
    reply_->write(net::encode_sse(dump(error_body(error))));
    reply_->finish();
  } else {
    net::Response response = error_response(error);
    response.headers = with_id(std::move(response.headers), id_);
    reply_->send(std::move(response));
  }
  reply_.reset();
}

}  // namespace tandem::protocol
