// A server to talk to: one that runs already, or one started for this command.
#pragma once

#include <memory>
#include <string>

#include "app/session_options.h"
#include "base/result.h"
#include "net/client.h"

namespace tandem::app {

inline constexpr const char* kDefaultUrl = "http://127.0.0.1:8080";

struct EndpointOptions {
  std::string url;  // given: join that server; empty: the default URL when a server answers there,
                    // else start one
  std::string key_file;
  SessionOptions session;  // for a server of its own
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;  // stops the server when it is our own
  virtual const net::Client& client() const = 0;
};

void declare(CLI::App& app, EndpointOptions& options);

/// Errors: kUnavailable (no server at the given URL), what starting one gives.
Result<std::unique_ptr<Endpoint>> join_or_start(const EndpointOptions& options);

/// A client with the key that the file's first line holds; an empty file name: no key.
Result<net::Client> client_of(const std::string& url, const std::string& key_file);

/// The message inside an OpenAI error body, or the status when there is none.
std::string error_message(const net::Response& response);

}  // namespace tandem::app
