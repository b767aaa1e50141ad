// tandem probe: a running server, checked from outside as its clients meet it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/checks/checks.h"
#include "app/command.h"
#include "app/endpoint.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string url = kDefaultUrl;
  std::string key_file;
  std::vector<std::string> only;  // names of checks; empty: all
  bool json = false;
};

struct Outcome {
  std::string name;
  checks::Verdict verdict;
  double seconds = 0;
};

Outcome carry_out(const checks::Check& check, checks::Target& target) {
  const auto begin = std::chrono::steady_clock::now();
  checks::Verdict verdict = check.run(target);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return {.name = check.name, .verdict = std::move(verdict), .seconds = time.count()};
}

void print(const Outcome& outcome) {
  std::printf("%-8s %-17s %s\n", name(outcome.verdict.state), outcome.name.c_str(),
              outcome.verdict.detail.c_str());
  std::fflush(stdout);
}

Json to_json(const Outcome& outcome) {
  return {{"check", outcome.name},
          {"state", name(outcome.verdict.state)},
          {"detail", outcome.verdict.detail},
          {"seconds", outcome.seconds}};
}

/// Without these no other check says anything.
bool is_needed(const std::string& name) { return name == "health" || name == "models"; }

bool is_wanted(const Options& options, const std::string& name) {
  return options.only.empty() || is_needed(name) || std::ranges::count(options.only, name) > 0;
}

int run(const Options& options) {
  auto client = client_of(options.url, options.key_file);
  if (!client) return fail("probe", client.error().message);
  checks::Target target{.client = std::move(*client)};
  Json all = Json::array();
  bool failed = false;
  for (const checks::Check& check : checks::all()) {
    if (!is_wanted(options, check.name)) continue;
    const Outcome outcome = carry_out(check, target);
    const bool bad = outcome.verdict.state == checks::Verdict::State::kFailed;
    failed |= bad;
    if (options.json) all.push_back(to_json(outcome));
    if (!options.json) print(outcome);
    if (bad && is_needed(check.name)) break;
  }
  if (options.json)
    std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  if (!flush_output()) return fail("probe", "the results could not be written");
  return failed ? 1 : 0;
}

void declare_options(CLI::App& app, Options& options) {
  app.add_option("url,--url", options.url, "Where the server is")->capture_default_str();
  app.add_option("--api-key-file", options.key_file, "File whose first key is the server's");
  std::vector<std::string> names;
  for (const checks::Check& check : checks::all()) names.push_back(check.name);
  comma_list(
      app.add_option("--only", options.only, "Checks to carry out, beside health and models [all]"))
      ->check(CLI::IsMember(names));
  app.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

Command probe() {
  return {.name = "probe",
          .summary =
              "Check a running server as its clients meet it; the exit status is 1 when a "
              "check failed",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
