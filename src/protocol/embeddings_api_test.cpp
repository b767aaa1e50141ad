// POST /v1/embeddings over loopback, in front of a scripted service.
#include <doctest/doctest.h>

#include "chat/fake_service_test.h"
#include "net/client.h"
#include "net/raw_socket_test.h"
#include "net/server.h"
#include "protocol/api.h"
#include "protocol/json.h"

namespace tandem::protocol {
namespace {

class EmbeddingServer {
 public:
  explicit EmbeddingServer(bool answers)
      : service_({.id = "org/tiny", .max_context = 64, .vocab = 100},
                 answers ? [](const chat::Request&) { return std::vector<chat::Event>(); }
                         : chat::FakeService::Script()),
        api_(service_, clock_, {}) {
    net::Router router;
    api_.add_routes(router);
    server_ = std::move(net::Server::start({}, std::move(router))).value();
  }

  net::Response post(const std::string& body) const {
    return net::Client::make(server_->url())->post("/v1/embeddings", body).value();
  }

  chat::FakeService& service() { return service_; }
  Api& api() { return api_; }
  uint16_t port() const { return server_->port(); }

 private:
  SteadyClock clock_;
  chat::FakeService service_;
  Api api_;
  std::unique_ptr<net::Server> server_;
};

TEST_CASE("embeddings api: vectors in order, tokens, an id, and a record of the request") {
  EmbeddingServer server(true);
  const net::Response response = server.post(R"({"input":["a","b","a"],"dimensions":4})");
  REQUIRE(response.status == 200);
  const Json body = Json::parse(response.body);
  REQUIRE(body["data"].size() == 3);
  CHECK(body["data"][0]["embedding"] == body["data"][2]["embedding"]);
  CHECK(body["data"][0]["embedding"] != body["data"][1]["embedding"]);
  CHECK(body["data"][1]["embedding"].size() == 4);
  CHECK(body["usage"]["prompt_tokens"] == 21);
  const std::string id(net::find_header(response.headers, "x-request-id"));
  CHECK(id.starts_with("embd-"));
  const auto record = server.api().table().find(id);
  REQUIRE(record.has_value());
  CHECK(record->endpoint == "embeddings");
  CHECK(record->prompt_tokens == 21);
  CHECK(record->outcome == Outcome::kFinished);
  CHECK(server.service().last_embedding().inputs.size() == 3);
}

TEST_CASE("embeddings api: an input too long is a 400 with both numbers") {
  EmbeddingServer server(true);
  const net::Response response = server.post(R"({"input":["a","too long"]})");
  CHECK(response.status == 400);
  const Json error = Json::parse(response.body)["error"];
  CHECK(error["code"] == "context_length_exceeded");
  CHECK(error["message"].get<std::string>().find("9 tokens > 8 maximum") != std::string::npos);
  CHECK(server.api().table().running() == 0);
}

TEST_CASE("embeddings api: a failure is its status, and a client that leaves cancels") {
  EmbeddingServer server(false);
  std::thread failing([&] {
    const std::string id = server.service().wait_for_submission();
    server.service().emit_embedding(id, Error{ErrorCode::kBusy, "the queue is full"});
  });
  CHECK(server.post(R"({"input":"a"})").status == 429);
  failing.join();
  CHECK(server.api().table().running() == 0);
  std::string id;
  {
    net::RawSocket socket(server.port());
    const std::string body = R"({"input":"a"})";
    socket.send("POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    id = server.service().wait_for_submission(2);
  }
  CHECK(server.service().wait_for_cancel(id, std::chrono::seconds(10)));
  server.service().emit_embedding(id, Error{ErrorCode::kCancelled, "the request was cancelled"});
}

}  // namespace
}  // namespace tandem::protocol
