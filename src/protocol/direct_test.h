// The routes without a network, in front of a scripted service.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "chat/fake_service_test.h"
#include "protocol/api.h"
#include "protocol/json.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol {

/// Keeps what a handler answers. Thread-safe.
class KeptReply final : public net::Reply {
 public:
  void send(net::Response response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    over_ = true;
    changed_.notify_all();
  }
  void start(int status, net::Headers headers) override {
    const std::lock_guard lock(mutex_);
    response_.status = status;
    response_.headers = std::move(headers);
  }
  bool write(std::string piece) override {
    const std::lock_guard lock(mutex_);
    response_.body += piece;
    return true;
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void on_closed(std::function<void()>) override {}
  void keep_alive(std::chrono::milliseconds, std::function<std::string()>) override {}

  /// The response when it is whole; status 0 when that takes more than 10 s.
  net::Response wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return over_; }))
      return {0, {}, {}};
    return response_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  net::Response response_;
  bool over_ = false;
};

class DirectApi {
 public:
  explicit DirectApi(chat::FakeService::Script script = {}, Options options = {})
      : service_(kTinyModel, std::move(script)), api_(service_, clock_, std::move(options)) {
    api_.add_routes(router_);
  }

  chat::FakeService& service() { return service_; }
  Api& api() { return api_; }

  /// Status 404 where there is no such route.
  net::Response respond(const std::string& method, const std::string& path, std::string body = {}) {
    const net::Router::Match match = router_.match(method, path);
    if (!match.route) return {.status = 404, .headers = {}, .body = {}};
    net::Request request;
    request.method = method;
    request.path = path;
    request.body = std::move(body);
    request.peer = "127.0.0.1";
    request.parameters = match.parameters;
    const auto reply = std::make_shared<KeptReply>();
    match.route->handler(request, reply);
    return reply->wait();
  }

  Json post(const std::string& path, std::string body) {
    return Json::parse(respond("POST", path, std::move(body)).body);
  }

 private:
  SteadyClock clock_;
  chat::FakeService service_;
  Api api_;
  net::Router router_;
};

}  // namespace tandem::protocol
