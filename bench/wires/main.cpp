// What the wires cost: so many streams at so many tokens a second, from drawn tokens to bytes that
// another process reads, without a model. bench_wires MODEL.gguf [--streams N] [--rate N]
// [--seconds N]: the share of a core that detokenizing, parsing and the protocol take together,
// writes to sockets a step and connection, and how long the first bytes take.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "chat/local_service.h"
#include "format/checkpoint.h"
#include "net/server.h"
#include "protocol/api.h"
#include "wires/readers.h"

namespace {

std::atomic<uint64_t> writes = 0;

}  // namespace

// Instead of the C library's, to count them.
extern "C" ssize_t send(int socket, const void* bytes, size_t count, int flags) {
  ++writes;
  return ::syscall(SYS_sendto, socket, bytes, count, flags, nullptr, 0);
}

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  ++writes;
  return ::syscall(SYS_sendmsg, socket, message, flags);
}

namespace tandem::bench {
namespace {

struct Settings {
  std::string model;
  size_t streams = 32;
  uint32_t rate = 100;
  uint32_t seconds = 10;
};

struct WireRow {
  const char* name;
  const char* path;
  const char* fields;
};

constexpr const char* kTool =
    R"({"type":"function","function":{"name":"edit","parameters":{"type":"object"}}})";

constexpr WireRow kRows[] = {
    {"chat", "/v1/chat/completions",
     R"("stream":true,"seed":SEED,"ignore_eos":true,"max_tokens":TOKENS,"tools":[TOOL])"},
    {"messages", "/v1/messages",
     R"("stream":true,"seed":SEED,"ignore_eos":true,"max_tokens":TOKENS,"tools":[{"name":"edit"}])"},
    {"ollama", "/api/chat", R"("options":{"seed":SEED,"num_predict":TOKENS})"},
};
constexpr WireRow kResponses = {
    "responses", "/v1/responses",
    R"("input":"x","stream":true,"seed":SEED,"ignore_eos":true,"max_output_tokens":TOKENS,"tools":[{"type":"function","name":"edit"}])"};

/// What an agent's model writes: prose, code and a call, over and over. To Ollama's API, which has
/// no way to go on behind a call, all of it is text.
constexpr const char* kAnswer =
    "I will read the file first, then change what the test expects: the café's menu has "
    "\xF0\x9F\x98\x80 in it. Here is the function as it stands:\n\n```cpp\nint add(int a, int b) "
    "{\n  return a + b;\n}\n```\n\nNow the edit.\n<tool_call>\n{\"name\": \"edit\", \"arguments\": "
    "{\"path\": \"src/add.cpp\", \"old\": \"return a + b;\", \"new\": \"const int sum = a + "
    "b;\\n  return sum;\", \"count\": 1}}\n</tool_call>\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string body_of(const WireRow& row, const Settings& settings) {
  std::string fields = replaced(row.fields, "TOOL]", std::string(kTool) + "]");
  fields = replaced(fields, "TOKENS", std::to_string(settings.rate * settings.seconds));
  const bool has_input = fields.find("\"input\"") != std::string::npos;
  return "{" + std::string(has_input ? "" : R"("messages":[{"role":"user","content":"x"}],)") +
         fields + "}";
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A process that waits for the port, reads and writes what it saw into the pipe.
struct Child {
  pid_t pid = -1;
  int to = -1;
  int from = -1;
};

Child start_reader(const WireRow& row, const Settings& settings, const FirstTokens& first) {
  int to[2];
  int from[2];
  TANDEM_CHECK(::pipe(to) == 0 && ::pipe(from) == 0, "no pipe");
  const pid_t pid = ::fork();
  TANDEM_CHECK(pid >= 0, "no process");
  if (pid == 0) {
    uint16_t port = 0;
    if (::read(to[0], &port, sizeof port) != sizeof port) ::_exit(1);
    const Reading reading =
        read_streams(port, row.path, body_of(row, settings), settings.streams, first);
    ::_exit(::write(from[1], &reading, sizeof reading) == sizeof reading ? 0 : 1);
  }
  ::close(to[0]);
  ::close(from[1]);
  return {pid, to[1], from[0]};
}

/// Fails when a stream did not end well.
bool measure(const WireRow& row, const Settings& settings, const format::Checkpoint& checkpoint) {
  FirstTokens& first = FirstTokens::make_shared();
  const Child child = start_reader(row, settings, first);  // before there are threads
  const text::ModelText text = text::load_model_text(checkpoint).value();
  const std::vector<gen::TokenId> script = text.tokenizer->encode(kAnswer, false).value();
  PacedGenerator generator(
      script, {.vocab = static_cast<uint32_t>(text.tokenizer->size()), .max_context = 1U << 20},
      settings.streams, std::chrono::nanoseconds(std::chrono::seconds(1)) / settings.rate, first);
  chat::LocalService service(generator, text,
                             {.id = "bench", .has_chat_template = text.chat_template != nullptr},
                             {.tool_dialect = "json_tools"});
  SteadyClock clock;
  protocol::Api api(service, clock, {});
  net::Router router;
  api.add_routes(router);
  const auto server = net::Server::start({}, std::move(router)).value();
  const uint16_t port = server->port();
  const double cpu = cpu_seconds();
  const int64_t begin = now_ns();
  const uint64_t before = writes;
  TANDEM_CHECK(::write(child.to, &port, sizeof port) == sizeof port, "the reader is gone");
  Reading reading;
  const bool came = ::read(child.from, &reading, sizeof reading) == sizeof reading;
  const double wall = static_cast<double>(now_ns() - begin) * 1e-9;
  const double share = (cpu_seconds() - cpu) / wall * 100;
  const double writes_each = static_cast<double>(writes - before) /
                             static_cast<double>(generator.steps() * settings.streams);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (!came || reading.whole != settings.streams) {
    std::printf("wires %s: %llu of %zu streams ended well\n", row.name,
                static_cast<unsigned long long>(reading.whole), settings.streams);
    return false;
  }
  std::printf(
      "wires %-10s %zu streams, %u tok/s each: %.1f %% of a core, %.2f writes a step and "
      "connection, first bytes after %.2f ms (at most %.2f)\n",
      row.name, settings.streams, settings.rate, share, writes_each, reading.first_byte_ms,
      reading.last_first_byte_ms);
  std::fflush(stdout);
  return true;
}

int run(const Settings& settings) {
  const auto checkpoint = format::open_checkpoint(settings.model);
  if (!checkpoint) {
    std::fprintf(stderr, "bench_wires: %s\n", checkpoint.error().message.c_str());
    return 1;
  }
  bool good = true;
  for (const WireRow& row : kRows) good &= measure(row, settings, **checkpoint);
  good &= measure(kResponses, settings, **checkpoint);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  CLI::App app{"What the wires cost"};
  tandem::bench::Settings settings;
  app.add_option("model", settings.model, "A checkpoint with a tokenizer")->required();
  app.add_option("--streams", settings.streams)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--rate", settings.rate, "Tokens a second")->capture_default_str();
  app.add_option("--seconds", settings.seconds)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return tandem::bench::run(settings);
}
