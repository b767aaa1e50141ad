// tandem status: what a running server is doing.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/endpoint.h"
#include "net/client.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string url = kDefaultUrl;
  std::string key_file;
  bool json = false;
};

void print_instance(const Json& instance) {
  std::printf("instance %s: %s, epoch %u, %s split over %zu rank%s\n",
              instance.value("name", "").c_str(), instance.value("state", "").c_str(),
              instance.value("epoch", 0U), instance.value("split", "").c_str(),
              instance["ranks"].size(), instance["ranks"].size() == 1 ? "" : "s");
  const std::string trouble = instance.value("trouble", "");
  if (!trouble.empty()) std::printf("  last trouble: %s\n", trouble.c_str());
  for (const Json& rank : instance["ranks"]) {
    std::printf("  rank %u: %s, pid %lu, %lu MiB of device memory, %lu steps\n",
                rank.value("rank", 0U), rank.value("state", "").c_str(), rank.value("pid", 0UL),
                rank.value("memory_bytes", 0UL) >> 20, rank.value("steps", 0UL));
  }
}

void print_request(const Json& request) {
  std::printf("  %s %s: %u of %u prompt tokens, %u cached, %u emitted\n",
              request.value("id", "").c_str(),
              request.value("phase", request.value("state", "")).c_str(),
              request.value("prefilled_tokens", 0U), request.value("prompt_tokens", 0U),
              request.value("cached_tokens", 0U), request.value("emitted_tokens", 0U));
}

int run(const Options& options) {
  const auto client = client_of(options.url, options.key_file);
  if (!client) return fail("status", client.error().message);
  const auto response = client->get("/v1/status");
  if (!response)
    return fail("status",
                fmt::format("no server answers at {}: {}", options.url, response.error().message));
  if (response->status != 200) return fail("status", error_message(response->body));
  if (options.json) {
    std::puts(response->body.c_str());
    return 0;
  }
  const Json status = Json::parse(response->body, nullptr, false);
  if (!status.is_object())
    return fail("status",
                fmt::format("{} did not answer with JSON: is it a tandem server?", options.url));
  std::printf("%s serves %s, context %u tokens\n", options.url.c_str(),
              status.value("model", "").c_str(), status.value("max_context", 0U));
  for (const Json& instance : status["instances"]) print_instance(instance);
  std::printf("requests running: %zu\n", status["requests"].size());
  for (const Json& request : status["requests"]) print_request(request);
  return 0;
}

}  // namespace

Command status() {
  return {.name = "status",
          .summary = "Show a running server's instances, ranks and requests",
          .declare = [](CLI::App& app) {
            const auto options =
                std::make_shared<Options>();  // shared: the parser fills what the run reads
            app.add_option("--url", options->url, "Where the server is")->capture_default_str();
            app.add_option("--api-key-file", options->key_file,
                           "File whose first key is the server's");
            app.add_flag("--json", options->json, "Print JSON");
            return [options] { return run(*options); };
          }};
}

}  // namespace tandem::app
