#include "protocol/call.h"

#include <fmt/format.h>

#include <chrono>
#include <random>

#include "protocol/errors.h"

namespace tandem::protocol {
namespace {

RequestRecord make_record(const Call::Parts& parts, const net::Request& request) {
  RequestRecord record;
  record.id = parts.id;
  record.endpoint = parts.endpoint;
  record.side = parts.side;
  record.model = parts.wire.model;
  record.client = client_of(request);
  record.peer = request.peer;
  record.stream = parts.wire.stream;
  record.choices = parts.wire.request.choices;
  record.created = unix_seconds();
  return record;
}

void count_words(Metrics& metrics, const WireRequest& wire) {
  metrics.ignored(wire.ignored);
  metrics.warned(wire.warnings);
}

bool allows_parallel_calls(const chat::Request& request) {
  const auto* conversation = std::get_if<chat::Conversation>(&request.input);
  return !conversation || conversation->parallel_calls;
}

}  // namespace

std::string client_of(const net::Request& request) {
  return request.key_id.empty() ? request.peer : request.key_id;
}

std::string salt_of(const Api& api, const net::Request& request) {
  return api.options().separate_clients ? request.key_id : std::string();
}

void set_client(const Api& api, const net::Request& request, chat::Request& wanted) {
  wanted.client = client_of(request);
  wanted.salt = salt_of(api, request);
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string new_request_id(const std::string& prefix) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

Call::Call(Api& api, ReplyPtr reply, const Parts& parts, std::unique_ptr<AnswerEncoder> encoder)
    : api_(api),
      id_(parts.id),
      stream_(parts.wire.stream),
      parallel_calls_(allows_parallel_calls(parts.wire.request)),
      reply_(std::move(reply)),
      encoder_(std::move(encoder)),
      last_shown_(api.clock().now()),
      answers_(parts.wire.request.choices),
      usages_(parts.wire.request.choices) {}

void Call::start(Api& api, const net::Request& request, const ReplyPtr& reply, Parts parts) {
  count_words(api.metrics(), parts.wire);
  const auto refuse = [&](AnswerEncoder& encoder, const Error& error) {
    api.metrics().refused(parts.endpoint, status_of(error));
    reply->send(encoder.refusal(error));
  };
  if (!api.table().open(make_record(parts, request))) {
    return refuse(*parts.encoder, {ErrorCode::kConflict, "the request's id is in use"});
  }
  chat::Request& wanted = parts.wire.request;
  wanted.id = parts.id;
  // Shared with the sink, which the service keeps until the last event.
  const auto call = std::make_shared<Call>(api, reply, parts, std::move(parts.encoder));
  const auto taken = api.service().submit(
      std::move(wanted), [call](chat::Event event) { call->receive(std::move(event)); });
  if (!taken) {
    api.table().forget(parts.id);
    return refuse(*call->encoder_, taken.error());
  }
  api.table().accept(parts.id, *taken);
  call->accepted(taken->prompt_tokens);
}

/// Opens the stream and handles what came before.
void Call::accepted(uint32_t prompt_tokens) {
  const std::weak_ptr<Call> weak = weak_from_this();
  const ReplyPtr reply = reply_;
  {
    const std::lock_guard lock(mutex_);
    std::string opening = encoder_->accepted(prompt_tokens);
    const auto period = api_.options().keep_alive;
    if (stream_) {
      reply_->start(200, with_id(encoder_->stream_headers()));
      if (!opening.empty()) reply_->write(std::move(opening));
      if (period.count() > 0) {
        reply_->keep_alive(period, [weak] {
          if (const auto call = weak.lock()) call->beat();
          return std::string();
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

/// Writes by itself, under the lock, so that what the encoder wrote before is there already.
void Call::beat() {
  const std::lock_guard lock(mutex_);
  if (!over_) wait_on();
}

void Call::wait_on() {
  const auto silence =
      std::chrono::duration_cast<std::chrono::milliseconds>(api_.clock().now() - last_shown_);
  reply_->write(encoder_->waiting(talking_ || !progress_ ? nullptr : &*progress_, silence));
}

void Call::handle(const chat::Event& event) {
  if (over_ || event.choice >= answers_.size() || is_surplus(event)) return;
  if (const auto* failed = std::get_if<chat::Failed>(&event.body)) return fail(failed->error);
  if (const auto* progress = std::get_if<chat::Progress>(&event.body)) {
    progress_ = *progress;
    if (stream_ && !talking_ && api_.options().keep_alive.count() > 0) wait_on();
    return;
  }
  if (!std::exchange(talking_, true)) encoder_->began();
  last_shown_ = api_.clock().now();
  if (stream_) {
    reply_->write(encoded(event));
  } else {
    answers_[event.choice].add(event);
  }
  const auto* end = std::get_if<chat::End>(&event.body);
  if (!end) return;
  usages_[event.choice] = end->usage;
  if (++ended_ == answers_.size()) finish();
}

std::string Call::encoded(const chat::Event& event) {
  const uint32_t choice = event.choice;
  if (const auto* delta = std::get_if<chat::Delta>(&event.body)) {
    return encoder_->delta(choice, *delta);
  }
  if (const auto* call = std::get_if<chat::CallStarted>(&event.body)) {
    return encoder_->call_started(choice, *call);
  }
  if (const auto* piece = std::get_if<chat::CallArguments>(&event.body)) {
    return encoder_->call_arguments(choice, *piece);
  }
  if (const auto* call = std::get_if<chat::CallEnded>(&event.body)) {
    return encoder_->call_ended(choice, *call);
  }
  return encoder_->end(choice, std::get<chat::End>(event.body));
}

/// A second call, where the client wants one at a time.
bool Call::is_surplus(const chat::Event& event) const {
  if (parallel_calls_) return false;
  if (const auto* call = std::get_if<chat::CallStarted>(&event.body)) return call->call > 0;
  if (const auto* piece = std::get_if<chat::CallArguments>(&event.body)) return piece->call > 0;
  const auto* call = std::get_if<chat::CallEnded>(&event.body);
  return call && call->call > 0;
}

net::Headers Call::with_id(net::Headers headers) const {
  headers.push_back({"X-Request-Id", id_});
  for (net::Header& header : encoder_->headers()) headers.push_back(std::move(header));
  return headers;
}

void Call::finish() {
  over_ = true;
  const chat::Usage total = total_usage(usages_);
  if (stream_) {
    reply_->write(encoder_->close(total));
    reply_->finish();
  } else {
    net::Response response = net::json_response(200, encoder_->whole(answers_, total));
    response.headers = with_id(std::move(response.headers));
    reply_->send(std::move(response));
  }
  reply_.reset();
}

/// The first failure of a choice ends the reply; an error is never text of the assistant.
void Call::fail(const Error& error) {
  over_ = true;
  rest_is_useless_ = ended_ + 1 < answers_.size();
  if (stream_) {
    reply_->write(encoder_->failed(error));
    reply_->finish();
  } else {
    net::Response response = encoder_->refusal(error);
    response.headers = with_id(std::move(response.headers));
    reply_->send(std::move(response));
  }
  reply_.reset();
}

}  // namespace tandem::protocol
