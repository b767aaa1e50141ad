// Serves a scripted model over the real wires, to try clients without one: words that depend on the
// last message, the seed and the choice. With tools it thinks and calls them; shown a result it
// says what it was. Prints its URL and serves until SIGTERM or SIGINT. Its one argument, if any, is
// a folder to keep responses in.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "base/clock.h"
#include "chat/fake_service_test.h"
#include "net/server.h"
#include "protocol/api.h"
#include "store/store.h"

namespace tandem {
namespace {

// --quick: no pause between pieces, and no answer is long.
bool quick = false;

/// Words as pieces, each with its bytes as one token.
std::vector<std::string> words(const chat::Request& request, uint32_t choice) {
  size_t key = request.sampling.temperature > 0 ? request.seed.value_or(0) * 31 + choice : 0;
  if (const auto* talk = std::get_if<chat::Conversation>(&request.input)) {
    key += std::hash<std::string>()(talk->messages.back().dump());
  } else {
    const auto& prompt = std::get<chat::RawPrompt>(request.input).prompt;
    if (const auto* text = std::get_if<std::string>(&prompt))
      key += std::hash<std::string>()(*text);
  }
  std::mt19937_64 random(key);
  const char* const pool[] = {" Paris", " is",   " the", " caf\xC3\xA9", " of", " \xF0\x9F\x98\x80",
                              " blue",  " seven"};
  const size_t natural = request.ignore_eos && !quick ? 100'000 : 20;
  const size_t count = std::min<size_t>(natural, request.max_tokens.value_or(1000));
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(pool[random() % 8]);
  return out;
}

chat::Event piece(const chat::Request& request,
                  uint32_t choice,
                  const std::string& text,
                  bool show) {
  chat::Delta delta{.channel = chat::Channel::kText, .text = show ? text : "", .logprobs = {}};
  if (request.logprobs) {
    chat::LogprobEntry entry{.token = {.bytes = text, .logprob = -0.5F}, .top = {}};
    for (uint32_t i = 0; i < *request.logprobs; ++i) {
      entry.top.push_back({.bytes = i == 0 ? text : std::string(1, static_cast<char>('a' + i)),
                           .logprob = -0.5F - static_cast<float>(i)});
    }
    delta.logprobs.push_back(std::move(entry));
  }
  return {.choice = choice, .body = std::move(delta)};
}

/// Where the earliest stop string begins in the text.
size_t stop_at(const chat::Request& request, const std::string& text) {
  size_t at = std::string::npos;
  for (const std::string& stop : request.stop) at = std::min(at, text.find(stop));
  return at;
}

/// The stop string that begins there.
std::string stop_text(const chat::Request& request, const std::string& text) {
  const size_t at = stop_at(request, text);
  for (const std::string& stop : request.stop) {
    if (text.compare(at, stop.size(), stop) == 0) return stop;
  }
  return {};
}

void add_choice(const chat::Request& request, uint32_t choice, std::vector<chat::Event>& out) {
  const std::vector<std::string> all = words(request, choice);
  std::string text;
  for (const std::string& word : all) text += word;
  const size_t stop = stop_at(request, text);
  std::string shown;
  uint32_t count = 0;
  for (const std::string& word : all) {
    if (stop != std::string::npos && shown.size() >= stop) break;
    const std::string part = word.substr(0, std::min(word.size(), stop - shown.size()));
    out.push_back(piece(request, choice, part, true));
    shown += part;
    ++count;
  }
  const bool cut =
      stop == std::string::npos && request.max_tokens && all.size() == *request.max_tokens;
  out.push_back(
      {.choice = choice,
       .body = chat::End{.reason = cut ? chat::FinishReason::kLength : chat::FinishReason::kStop,
                         .stop_text = stop == std::string::npos ? "" : stop_text(request, text),
                         .usage = {.prompt_tokens = chat::FakeService::prompt_tokens(request),
                                   .cached_tokens = chat::FakeService::prompt_tokens(request) - 1,
                                   .completion_tokens = count}}});
}

chat::Event said(chat::Channel channel, std::string text) {
  return {.choice = 0,
          .body = chat::Delta{.channel = channel, .text = std::move(text), .logprobs = {}}};
}

/// Empty where a message has no such text.
std::string text_in(const chat::Json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Calls every tool with arguments in small pieces, or tells the result of one.
std::vector<chat::Event> agent_turn(const chat::Request& request, const chat::Conversation& talk) {
  const chat::Json& last = talk.messages.back();
  std::vector<chat::Event> out;
  out.push_back({.choice = 0, .body = chat::Progress{3, 7, 2}});
  out.push_back(said(chat::Channel::kThinking, "What "));
  out.push_back(said(chat::Channel::kThinking, "now?"));
  chat::End end{.reason = chat::FinishReason::kStop,
                .stop_text = {},
                .usage = {.prompt_tokens = chat::FakeService::prompt_tokens(request),
                          .cached_tokens = 2,
                          .completion_tokens = 9,
                          .reasoning_tokens = 2}};
  if (text_in(last, "role") == "tool") {
    out.push_back(said(chat::Channel::kText, text_in(last, "name") + " said: "));
    out.push_back(said(chat::Channel::kText, text_in(last, "content")));
  } else {
    out.push_back(said(chat::Channel::kText, "\n\nLet me see."));
    for (uint32_t call = 0; call < talk.tools.size(); ++call) {
      out.push_back({.choice = 0,
                     .body = chat::CallStarted{.call = call,
                                               .id = "call_" + std::to_string(call),
                                               .name = talk.tools[call]["function"]["name"]}});
      for (const char* piece : {"{\"path\": \"caf", "\xC3\xA9 \\\"a\\\"", "\", \"n\": 1}"}) {
        out.push_back({.choice = 0, .body = chat::CallArguments{.call = call, .json = piece}});
      }
      out.push_back({.choice = 0, .body = chat::CallEnded{.call = call}});
    }
    end.reason = chat::FinishReason::kToolCalls;
  }
  out.push_back({.choice = 0, .body = end});
  return out;
}

std::vector<chat::Event> script(const chat::Request& request) {
  const auto* talk = std::get_if<chat::Conversation>(&request.input);
  if (talk && !talk->tools.is_null()) return agent_turn(request, *talk);
  std::vector<chat::Event> out;
  out.push_back({.choice = 0, .body = chat::Progress{3, 7}});
  for (uint32_t choice = 0; choice < request.choices; ++choice) add_choice(request, choice, out);
  return out;
}

/// Null without a folder.
std::unique_ptr<store::Store> open_store(const char* folder) {
  if (folder == nullptr) return nullptr;
  auto opened = store::Store::open({.folder = folder});
  if (opened) return std::move(*opened);
  std::fprintf(stderr, "protocol_demo: %s\n", opened.error().message.c_str());
  std::exit(1);
}

int serve(const char* state_folder) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  SteadyClock clock;
  const auto store = open_store(state_folder);
  chat::FakeService service({.id = "demo",
                             .max_context = 4096,
                             .native_context = 4096,
                             .max_output = 4096,
                             .vocab = 49152,
                             .created = 1,
                             .has_chat_template = true},
                            script, std::chrono::milliseconds(quick ? 0 : 2));
  protocol::Options options;
  options.fingerprint = "demo";
  protocol::Api api(service, clock, options, {}, store.get());
  net::Router router;
  api.add_routes(router);
  auto server = net::Server::start({}, std::move(router));
  if (!server) {
    std::fprintf(stderr, "protocol_demo: %s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("protocol_demo: serving on %s\n", (*server)->url().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  (*server)->stop(std::chrono::seconds(1));
  service.stop();
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const char* state_folder = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--quick") {
      tandem::quick = true;
    } else {
      state_folder = argv[i];
    }
  }
  return tandem::serve(state_folder);
}
