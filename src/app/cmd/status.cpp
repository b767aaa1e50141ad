// tandem status: what a running server is doing.
#include <cstdio>

#include "app/command.h"
#include "app/endpoint.h"
#include "app/server_json.h"
#include "app/status_text.h"
#include "net/client.h"

namespace tandem::app {
namespace {

struct Options {
  std::string url = kDefaultUrl;
  std::string key_file;
  bool json = false;
};

int run(const Options& options) {
  const auto client = client_of(options.url, options.key_file);
  if (!client) return fail("status", client.error().message);
  const auto response = client->get("/v1/status");
  if (!response)
    return fail("status",
                fmt::format("no server answers at {}: {}", options.url, response.error().message));
  if (response->status != 200) return fail("status", error_message(*response));
  const auto status = parse_server_json(response->body);
  if (!member_of(status, "model").is_string() || !member_of(status, "instances").is_array())
    return fail("status", fmt::format("{} did not answer with a status: is it a tandem server?",
                                      options.url));
  const std::string text = options.json ? response->body + "\n" : status_text(options.url, status);
  std::fputs(text.c_str(), stdout);
  if (!flush_output()) return fail("status", "the status could not be written");
  return 0;
}

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--url", options.url, "Where the server is")->capture_default_str();
  app.add_option("--api-key-file", options.key_file, "File whose first key is the server's");
  app.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

Command status() {
  return {.name = "status",
          .summary = "Show a running server's instances, ranks and requests",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
