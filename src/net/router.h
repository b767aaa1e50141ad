// Which handler answers which method and path.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/reply.h"
#include "net/request.h"

namespace tandem::net {

/// Answers a request, now or later: it may keep the reply. Runs on a worker thread, which it may
/// keep busy.
using Handler = std::function<void(const Request&, std::shared_ptr<Reply>)>;

enum class Access { kKeyed, kOpen };

struct Route {
  std::string method;
  std::string pattern;  // segments; {name} takes one of them, {name...} at the end all that is left
  Handler handler;
  Access access = Access::kKeyed;
};

class Router {
 public:
  struct Match {
    const Route* route = nullptr;
    std::map<std::string, std::string> parameters;  // percent-decoded
    std::string allow;  // methods this path has, when the one asked for is not among them
  };

  void add(Route route);

  /// HEAD finds the route of GET. Exact segments win over parameters, whatever the order of add().
  Match match(std::string_view method, std::string_view path) const;

  /// Puts a fault, found before a handler was reached, in the words of the path's wire.
  using Restate = std::function<void(Response&)>;

  /// Faults of this path and of those below it are restated.
  void restate_below(std::string path, Restate restate);
  void restate(std::string_view path, Response& fault) const;

 private:
  std::vector<Route> routes_;
  std::vector<std::pair<std::string, Restate>> restated_;
};

}  // namespace tandem::net
