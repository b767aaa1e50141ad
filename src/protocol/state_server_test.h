// A server over a state folder, in front of a scripted service.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chat/fake_service_test.h"
#include "net/client.h"
#include "net/server.h"
#include "net/sse.h"
#include "protocol/api.h"
#include "protocol/json.h"
#include "store/folder_test.h"

namespace tandem::protocol {

inline std::vector<chat::Event> kept_answer(const std::vector<std::string>& words) {
  std::vector<chat::Event> out;
  for (const std::string& word : words) {
    out.push_back(
        {.choice = 0,
         .body = chat::Delta{.channel = chat::Channel::kText, .text = word, .logprobs = {}}});
  }
  out.push_back({.choice = 0, .body = chat::End{}});
  return out;
}

/// A server over a state folder, to be ended and started again.
class StateServer {
 public:
  explicit StateServer(const store::TestFolder& folder,
                       chat::FakeService::Script script = {},
                       std::vector<std::string> keys = {},
                       store::Limits limits = {},
                       store::WriteQueueOptions queue = {})
      : store_(store::Store::open({.folder = folder.state()}, queue).value()),
        service_({.id = "m", .max_context = 4096, .vocab = 10, .has_chat_template = true},
                 std::move(script)) {
    Options options;
    options.state = limits;
    options.separate_clients = keys.size() > 1;
    api_ = std::make_unique<Api>(service_, clock_, std::move(options), Probe(), store_.get());
    net::Router router;
    api_->add_routes(router);
    net::ServerOptions listening;
    listening.keys = std::move(keys);
    server_ = net::Server::start(std::move(listening), std::move(router)).value();
  }

  ~StateServer() {
    server_.reset();
    service_.stop();
  }
  StateServer(const StateServer&) = delete;
  StateServer& operator=(const StateServer&) = delete;

  chat::FakeService& service() { return service_; }
  store::Store& store() { return *store_; }

  net::Client client(const std::string& key = {}) const {
    net::ClientOptions wanted;
    wanted.key = key;
    return net::Client::make(server_->url(), wanted).value();
  }
  Json post(const std::string& path, const std::string& body, int status = 200) const {
    const auto got = client().post("/v1" + path, body).value();
    CHECK_MESSAGE(got.status == status, got.body);
    return Json::parse(got.body);
  }
  Json get(const std::string& path, int status = 200) const {
    const auto got = client().get("/v1" + path).value();
    CHECK_MESSAGE(got.status == status, got.body);
    return Json::parse(got.body);
  }
  /// What the model was shown last.
  Json messages() const {
    return std::get<chat::Conversation>(service_.last_request().input).messages;
  }
  /// The response once it has ended.
  Json ended(const std::string& id) const {
    for (int i = 0; i < 500; ++i) {
      const Json now = get("/responses/" + id);
      if (now["status"] != "queued" && now["status"] != "in_progress") return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL("it did not end");
    return {};
  }

 private:
  SteadyClock clock_;
  std::unique_ptr<store::Store> store_;
  chat::FakeService service_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<net::Server> server_;
};

inline std::vector<net::SseEvent> events_of(const std::string& bytes) {
  net::SseParser parser;
  std::vector<net::SseEvent> out;
  for (net::SseEvent& event : parser.feed(bytes)) {
    if (event.comment.empty()) out.push_back(std::move(event));
  }
  return out;
}

inline chat::FakeService::Script says(std::vector<std::string> words) {
  return [words](const chat::Request&) { return kept_answer(words); };
}

}  // namespace tandem::protocol
