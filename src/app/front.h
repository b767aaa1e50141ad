// The HTTP side of a server: routes over a backend, and the listening socket.
#pragma once

#include <memory>
#include <string>

#include "app/backend.h"
#include "base/clock.h"
#include "chat/sharing_service.h"
#include "net/server.h"
#include "protocol/api.h"

namespace tandem::app {

class Front {
 public:
  /// Listens at once; requests wait until the backend is ready. The backend and the store (null:
  /// nothing is kept) must outlive it.
  /// Errors: those of net::Server::start.
  static Result<std::unique_ptr<Front>> start(Backend& backend,
                                              protocol::Options options,
                                              net::ServerOptions server,
                                              store::Store* store = nullptr);

  /// Stops the server and the backend, so that no request uses what is gone.
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  const net::Server& server() const { return *server_; }

  /// Takes no new requests, lets running ones end for up to `time`, then cuts them.
  void stop(std::chrono::milliseconds time) { server_->stop(time); }

 private:
  Front(Backend& backend, protocol::Options options, store::Store* store);

  Backend& backend_;
  const std::unique_ptr<chat::SharingService> sharing_;  // null: each request has its own
  const SteadyClock clock_;
  protocol::Api api_;
  std::unique_ptr<net::Server> server_;  // last: its threads use what is above
};

}  // namespace tandem::app
