#include "instance.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "control/rank_command.h"
#include "control/secret.h"

namespace tandem::default_model {

namespace {

/// A path that a machine which did not build this test gives in the environment.
std::string given(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : otherwise;
}

plan::CommKind comm_of(const Layout& layout) {
  if (layout.comm == "tcp") return plan::CommKind::kTcp;
  if (layout.comm == "ring") return plan::CommKind::kRing;
  if (layout.comm == "mpi") return plan::CommKind::kMpi;
  return plan::CommKind::kSharedMemory;
}

}  // namespace

bool has_mpi() {
  return std::getenv("TANDEM_TEST_MPIRUN") != nullptr &&
         std::getenv("TANDEM_TEST_MPI_LIBRARY") != nullptr;
}

std::string model_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      cache != nullptr ? std::filesystem::path(cache)
                       : std::filesystem::path(home == nullptr ? "" : home) / ".cache";
  const auto path = folder / "tandem/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  REQUIRE_MESSAGE(std::filesystem::exists(path),
                  "no " << path.string() << ": run tools/fetch_default_model.sh");
  return path.string();
}

std::unique_ptr<control::InstanceGenerator> start(const Layout& layout) {
  static std::atomic<int> count = 0;
  const std::string name = fmt::format("test-{}-{}", ::getpid(), count++);
  control::InstanceGeneratorOptions options;
  options.instance.name = name;
  options.instance.ranks = layout.ranks;
  options.instance.comm = comm_of(layout);
  if (plan::ends_with_process(options.instance.comm))
    options.instance.progress.floor = std::chrono::seconds(60);  // they spin: slow on busy cores
  if (layout.comm == "mpi") options.mpirun = given("TANDEM_TEST_MPIRUN", "");
  options.instance.meeting_prefix = fmt::format("/tandem-{}-", name);
  options.instance.make_secret = control::random_secret;
  options.program = given("TANDEM_RANK", TANDEM_RANK_PATH);
  control::RankCommand command{.instance = name,
                               .ranks = layout.ranks,
                               .model = {"--model", model_path(), "--split", layout.split,
                                         "--threads", layout.ranks == 1 ? "2" : "1",
                                         "--memory-bytes", std::to_string(uint64_t{1} << 30)}};
  if (plan::ends_with_process(comm_of(layout)))
    command.model.insert(command.model.end(), {"--backend", layout.comm});
  if (layout.comm == "mpi")
    command.model.insert(command.model.end(),
                         {"--mpi-library", given("TANDEM_TEST_MPI_LIBRARY", "")});
  options.arguments = [command](uint32_t rank, const std::string& head) {
    return control::rank_arguments(command, rank, head);
  };
  auto generator = control::InstanceGenerator::start(std::move(options));
  REQUIRE(generator);
  REQUIRE((*generator)->wait_ready(std::chrono::seconds(120)));
  return std::move(*generator);
}

gen::Sink Answer::sink() {
  return [this](const gen::Event& event) { take(event); };
}

void Answer::take(const gen::Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    for (const gen::Token& token : tokens->tokens) tokens_.push_back(token.id);
  }
  if (event.is_last()) last_ = event;
  changed_.notify_all();
}

std::vector<gen::TokenId> Answer::wait() {
  std::unique_lock lock(mutex_);
  REQUIRE(changed_.wait_for(lock, std::chrono::seconds(300), [&] { return last_.has_value(); }));
  const auto* failed = std::get_if<gen::Failed>(&last_->body);
  REQUIRE_MESSAGE(std::holds_alternative<gen::Finished>(last_->body),
                  (failed != nullptr ? failed->error.message : "cancelled"));
  return tokens_;
}

size_t Answer::length() const {
  const std::lock_guard lock(mutex_);
  return tokens_.size();
}

std::vector<Reference> references() {
  std::ifstream in(given("TANDEM_HOME", TANDEM_SOURCE_DIR) + "/tests/golden/default_model.json");
  const auto json = nlohmann::json::parse(in);
  std::vector<Reference> result;
  for (const auto& entry : json) {
    result.push_back({entry["prompt"], entry["ids"], entry["tokens"], entry["gaps"]});
  }
  return result;
}

}  // namespace tandem::default_model
