// tandem serve: a model behind the OpenAI and Anthropic wires.
#include <csignal>
#include <cstdio>

#include "app/command.h"
#include "app/front.h"
#include "app/guard_options.h"
#include "app/key_file.h"
#include "app/model_path.h"
#include "app/replay_options.h"
#include "app/scripted_session.h"
#include "app/session.h"
#include "app/signals.h"
#include "app/state_options.h"
#include "app/system.h"
#include "app/version.h"
#include "base/log.h"

namespace tandem::app {
namespace {

struct Options {
  SessionOptions session;
  std::string script;  // file; empty: the model itself answers
  StateOptions state;
  ReplayOptions replay;
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string key_file;
  std::vector<std::string> origins;
  std::vector<std::string> aliases;
  bool insecure = false;
  bool strict = false;
  uint32_t keep_alive_seconds = 10;
  uint32_t drain_seconds = 30;
  GuardOptions guards;
  bool no_side_rules = false;
  bool share_identical = false;
};

protocol::Options protocol_options(const Options& options, size_t keys) {
  protocol::Options result;
  result.aliases = options.aliases;
  result.fingerprint = fmt::format("tandem-{}-mlx-{}-{}", kVersion, kMlxVersion, platform());
  result.signing_key = options.session.handle_key;
  result.state = state_limits(options.state);
  result.strict_fields = options.strict;
  result.guards = settings(options.guards);
  result.side_rules = !options.no_side_rules;
  result.share_identical = options.share_identical;
  result.separate_clients = keys > 1;
  result.keep_alive = std::chrono::seconds(options.keep_alive_seconds);
  return result;
}

net::ServerOptions server_options(const Options& options) {
  net::ServerOptions result;
  result.host = options.host;
  result.port = options.port;
  result.allowed_origins = options.origins;
  result.allow_open = options.insecure;
  return result;
}

void print_welcome(const std::string& url, const std::string& model) {
  std::printf(
      "tandem serves %s at %s/v1\n\n"
      "  curl -s %s/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of "
      "France?\"}]}'\n\n"
      "  ./tandem chat, ./tandem status; Ctrl-C drains and ends\n",
      model.c_str(), url.c_str(), url.c_str());
  std::fflush(stdout);
}

/// Lets running requests end, until the time is over or another signal comes; then ends the ranks.
void drain(Backend& backend, Front& front, std::chrono::seconds time, const SignalSet& signals) {
  TANDEM_LOG(kInfo, "draining: running requests have {} s; another signal ends them", time.count());
  backend.drain();
  const auto end = std::chrono::steady_clock::now() + time;
  while (!backend.wait_drained(std::chrono::milliseconds(100)) &&
         std::chrono::steady_clock::now() < end && !signals.pending()) {
  }
  backend.stop();  // what is left has its last event, which clients still hear
  front.stop(std::chrono::seconds(1));
}

template <class Made>
Result<std::unique_ptr<Backend>> as_backend(Result<std::unique_ptr<Made>> made) {
  if (!made) return made.error();
  return std::unique_ptr<Backend>(std::move(*made));
}

Result<std::unique_ptr<Backend>> start_backend(const Options& options) {
  if (options.script.empty()) return as_backend(Session::start(options.session));
  return as_backend(ScriptedSession::start(options.session, options.script));
}

/// The options that help with an address that may not be listened on.
const char* advice(const Error& error) {
  const bool is_open = error.code == ErrorCode::kForbidden;
  return is_open ? ": give --api-key-file FILE, or --insecure-no-key if that is meant" : "";
}

/// What is remembered from one request to the next, and from one server to the next.
Status set_memory(const Clock& clock, store::Store* state, Options& options) {
  auto key = handle_key(state ? state->database().folder() : std::filesystem::path());
  if (!key) return key.error();
  options.session.handle_key = std::move(*key);
  options.session.turns = make_memory(options.replay, state, clock);
  return {};
}

int run(const Options& given) {
  // A fetch may take long: signals end the process until it is done.
  if (const auto model = find_model(given.session.model.name); !model)
    return fail("serve", model.error().message);
  const SignalSet signals({SIGINT, SIGTERM});  // before any thread starts
  net::ServerOptions server = server_options(given);
  if (!given.key_file.empty()) {
    auto keys = read_keys(given.key_file);
    if (!keys) return fail("serve", keys.error().message);
    server.keys = std::move(*keys);
  }
  // Known before a model is loaded, not after.
  if (const Status free = net::Server::can_listen(server); !free)
    return fail("serve", free.error().message + advice(free.error()));
  const SteadyClock clock;
  const auto state = open_state(given.state);
  if (!state) return fail("serve", state.error().message);
  Options options = given;  // goes before the state, in which it may remember answers
  if (const Status set = set_memory(clock, state->get(), options); !set)
    return fail("serve", set.error().message);
  auto backend = start_backend(options);
  if (!backend) return fail("serve", backend.error().message);
  const size_t keys = server.keys.size();
  auto front =
      Front::start(**backend, protocol_options(options, keys), std::move(server), state->get());
  if (!front) return fail("serve", front.error().message);
  while (!(*backend)->wait_ready(std::chrono::milliseconds(100))) {
    if (signals.pending()) return 0;
    if (const auto reason = (*backend)->end_reason()) return fail("serve", *reason);
  }
  print_welcome((*front)->server().url(), (*backend)->service().model().id);
  signals.wait();
  drain(**backend, **front, std::chrono::seconds(options.drain_seconds), signals);
  return 0;
}

/// Options of ranks, which a script has none of.
void declare_script(CLI::App& app, Options& options) {
  CLI::Option* script =
      app.add_option("--script", options.script,
                     "File that says what is answered, in the model's tokens and dialect: no ranks "
                     "are started (docs/scripts.md)");
  for (const char* name : {"--ranks", "--split", "--shares", "--threads", "--device", "--path",
                           "--cpu-level", "--kv-type", "--deterministic", "--pin", "--memory",
                           "--prefix-cache", "--comm", "--rank-log"}) {
    script->excludes(app.get_option(name));
  }
}

void declare_options(CLI::App& app, Options& options) {
  declare(app, options.session);
  declare_script(app, options);
  declare(app, options.state);
  declare(app, options.replay);
  app.add_option("--host", options.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", options.port, "Port; 0 takes a free one")
      ->check(within(0, 65535))
      ->capture_default_str();
  app.add_option("--api-key-file", options.key_file,
                 "File with API keys, one a line; without it no key is asked for");
  comma_list(app.add_option("--allowed-origins", options.origins,
                            "Origins of web pages that may call, exact"));
  comma_list(app.add_option("--alias", options.aliases, "Further names of the model"));
  app.add_flag("--insecure-no-key", options.insecure, "Listen beyond loopback without a key");
  app.add_flag("--strict-fields", options.strict,
               "Refuse unknown request fields instead of ignoring them");
  declare(app, options.guards);
  app.add_flag("--no-side-rules", options.no_side_rules,
               "Run titles, probes and the like as any request, unless they ask for low priority");
  app.add_flag("--share-identical", options.share_identical,
               "One generation for identical greedy or seeded requests that run at the same time");
  app.add_option("--thinking-wrap-up", options.session.thinking_wrap_up,
                 "Sentence at the end of a thought that reached its budget");
  app.add_option("--keepalive", options.keep_alive_seconds,
                 "Seconds between comments in silent streams; 0: none")
      ->capture_default_str();
  app.add_option("--drain", options.drain_seconds, "Seconds that running requests get at the end")
      ->capture_default_str();
}

}  // namespace

Command serve() {
  return {.name = "serve",
          .summary = "Serve a model over the OpenAI and Anthropic wires",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
