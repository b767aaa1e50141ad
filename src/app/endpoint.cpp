#include "app/endpoint.h"

#include <cstdio>
#include <utility>

#include "app/front.h"
#include "app/key_file.h"
#include "app/server_json.h"
#include "app/session.h"

namespace tandem::app {
namespace {

class Joined final : public Endpoint {
 public:
  explicit Joined(net::Client client) : client_(std::move(client)) {}
  const net::Client& client() const override { return client_; }

 private:
  const net::Client client_;
};

class Own final : public Endpoint {
 public:
  Own(std::unique_ptr<Session> session, std::unique_ptr<Front> front, net::Client client)
      : session_(std::move(session)), front_(std::move(front)), client_(std::move(client)) {}
  ~Own() override { front_->stop(std::chrono::milliseconds(0)); }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

  const net::Client& client() const override { return client_; }

 private:
  const std::unique_ptr<Session> session_;
  const std::unique_ptr<Front> front_;
  const net::Client client_;
};

Result<std::unique_ptr<Endpoint>> start_own(const EndpointOptions& options) {
  auto session = Session::start_ready(options.session);
  if (!session) return session.error();
  auto front = Front::start(**session, {}, {});
  if (!front) return front.error();
  auto client = net::Client::make((*front)->server().url());
  if (!client) return client.error();
  return std::unique_ptr<Endpoint>(
      std::make_unique<Own>(std::move(*session), std::move(*front), std::move(*client)));
}

}  // namespace

void declare(CLI::App& app, EndpointOptions& options) {
  declare(app, options.session);
  app.add_option("--url", options.url,
                 fmt::format("Server to join [{} when one answers there, else a server of its own]",
                             kDefaultUrl));
  app.add_option("--api-key-file", options.key_file, "File whose first key is the server's");
}

Result<net::Client> client_of(const std::string& url, const std::string& key_file) {
  net::ClientOptions options;
  if (!key_file.empty()) {
    const auto keys = read_keys(key_file);
    if (!keys) return keys.error();
    options.key = keys->front();
  }
  return net::Client::make(url, options);
}

Result<std::unique_ptr<Endpoint>> join_or_start(const EndpointOptions& options) {
  const bool asked = !options.url.empty();
  if (!asked && !options.session.model.name.empty()) return start_own(options);
  auto client = client_of(asked ? options.url : kDefaultUrl, options.key_file);
  if (!client) return client.error();
  const auto alive = client->get("/health/live");
  if (alive && alive->status == 200)
    return std::unique_ptr<Endpoint>(std::make_unique<Joined>(std::move(*client)));
  if (asked)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("no tandem server answers at {}", options.url)};
  std::fprintf(stderr, "no server at %s: starting one for this conversation\n", kDefaultUrl);
  return start_own(options);
}

std::string error_message(const net::Response& response) {
  const std::string message =
      text_of(member_of(parse_server_json(response.body), "error"), "message");
  if (!message.empty()) return message;
  return fmt::format("the server answered with status {}", response.status);
}

}  // namespace tandem::app
