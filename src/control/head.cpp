#include "control/head.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tandem::control {

Result<std::unique_ptr<Head>> Head::start(HeadOptions options) {
  InstanceGeneratorOptions generator{.instance = options.instance,
                                     .listen = options.listen_host + ":0",
                                     .program = options.rank_program,
                                     .arguments = {},
                                     .output_path = options.log_path};
  generator.instance.name = options.name;
  generator.instance.ranks = options.ranks;
  generator.instance.comm = options.comm;
  generator.instance.shared_memory_prefix = fmt::format("tandem-{}-{}-", ::getpid(), options.name);
  // Called on one thread, whenever a process starts.
  generator.arguments = [options = std::move(options), start = uint64_t{0}](
                            uint32_t rank, const std::string& address) mutable {
    return rank_command(options, rank, address, start++);
  };
  auto started = InstanceGenerator::start(std::move(generator));
  if (!started) return started.error();
  return std::unique_ptr<Head>(new Head(std::move(*started)));
}

bool Head::drain(Duration time) {
  generator_->drain();
  const bool is_drained = generator_->wait_drained(time);
  generator_->stop();
  return is_drained;
}

std::vector<std::string> rank_command(const HeadOptions& options,
                                      uint32_t rank,
                                      const std::string& control_address,
                                      uint64_t start) {
  std::vector<std::string> arguments{
      "--rank",     std::to_string(rank), "--size",      std::to_string(options.ranks),
      "--control",  control_address,      "--listen",    options.listen_host,
      "--instance", options.name,         "--secret-fd", std::to_string(Process::kSecretFd)};
  if (options.verbose) arguments.emplace_back("--verbose");
  if (!options.plan_log_folder.empty()) {
    arguments.emplace_back("--plan-log");
    arguments.push_back(fmt::format("{}/{:06}-rank{}.plans", options.plan_log_folder, start, rank));
  }
  arguments.insert(arguments.end(), options.rank_arguments.begin(), options.rank_arguments.end());
  return arguments;
}

}  // namespace tandem::control
