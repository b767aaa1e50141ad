#include "app/model_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "app/auto_split.h"
#include "app/command.h"
#include "app/option_words.h"
#include "base/log.h"

namespace tandem::app {

void declare(CLI::App& app, ModelOptions& options) {
  app.add_option("model", options.name,
                 "Folder with safetensors, .gguf file, or org/name in the Hugging Face cache "
                 "[SmolLM2-135M-Instruct]");
  app.add_option("--ranks", options.ranks, "Processes that share the model")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--split", options.split, "How ranks share it; auto says what it took, and why")
      ->check(CLI::IsMember({"auto", "tensor", "pipeline"}))
      ->capture_default_str();
  comma_list(
      app.add_option("--shares", options.shares, "Relative size of each rank's part, such as 2,1"));
  app.add_option("--threads", options.threads,
                 "Worker threads of each rank [its share of the cores]")
      ->check(CLI::Range(0, 1024));
  app.add_option("--device", options.device, "What computes: auto takes a GPU that MLX can use")
      ->check(device_words())
      ->capture_default_str();
  app.add_option("--path", options.path,
                 "Kernels: fast (ours, on the CPU), or plain (MLX operations; slow on a CPU, the "
                 "oracle); auto: what the device has")
      ->check(path_words())
      ->capture_default_str();
  app.add_option("--cpu-level", options.cpu_level,
                 "Instructions of the fast path, at most: to compare, or to get another machine's "
                 "answers; auto: the best that this machine has")
      ->check(cpu_level_words())
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type,
                 "Of keys and values on the fast path: f16 takes half the memory; auto: f32 where "
                 "the weights are f32, else f16")
      ->check(kv_type_words())
      ->capture_default_str();
  app.add_flag("--deterministic", options.deterministic,
               "The same bits for prompts as for answers, with AMX too (prefill of long prompts is "
               "slower there), and a refusal to run where a request's tokens may depend on what "
               "else is in the batch");
  app.add_flag("--pin", options.pin,
               "Keep each worker thread on a core of its own: for machines that do nothing else");
}

namespace {

/// What is known of paths on any machine; the rest, resolve_device() of the rank sees.
Status check_path(const ModelOptions& options) {
  if (options.device == "gpu" && options.path == "fast")
    return Error{ErrorCode::kInvalid,
                 "--path fast runs on the CPU: leave out --device gpu, or --path fast"};
  if (options.deterministic && (options.path == "plain" || options.device == "gpu"))
    return Error{
        ErrorCode::kInvalid,
        fmt::format("--deterministic holds on the fast path of the CPU only: leave out {}, "
                    "or --deterministic",
                    options.path == "plain" ? "--path plain" : "--device gpu")};
  return {};
}

Status check_shares(const ModelOptions& options) {
  if (!options.shares.empty() && options.shares.size() != options.ranks) {
    return Error{ErrorCode::kInvalid, fmt::format("--shares names {} parts for {} ranks",
                                                  options.shares.size(), options.ranks)};
  }
  double sum = 0;
  for (const double share : options.shares) {
    if (!(share >= 0 && share <= 1e9)) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("--shares must be numbers from 0 to 1e9, not {}", share)};
    }
    sum += share;
  }
  if (!options.shares.empty() && !(sum > 0)) {
    return Error{ErrorCode::kInvalid, "--shares must give at least one rank a part"};
  }
  return {};
}

}  // namespace

Status check(const ModelOptions& options) {
  const Status path = check_path(options);
  return path ? check_shares(options) : path;
}

topology::SplitChoice choose_split(const ModelOptions& options,
                                   const format::Checkpoint& checkpoint) {
  if (options.split == "tensor") return {topology::Split::kTensor, "it was asked for"};
  if (options.split == "pipeline") return {topology::Split::kPipeline, "it was asked for"};
  topology::SplitChoice choice =
      auto_split(checkpoint, options.ranks, options.shares, topology::Link::kHost);
  if (options.ranks > 1) {
    TANDEM_LOG(kInfo, "split auto: {}, because {}",
               choice.alone ? "one rank alone" : topology::name(choice.split), choice.reason);
  }
  return choice;
}

ModelOptions alone(ModelOptions options) {
  options.threads *= options.ranks;
  options.ranks = 1;
  return options;
}

uint32_t threads_of_rank(const ModelOptions& options, uint32_t cores) {
  if (options.threads == 0) return std::max(1U, cores / options.ranks);
  return std::min(options.threads, kMostThreadsPerCore * std::max(1U, cores));
}

std::vector<std::string> rank_options(const ModelOptions& options,
                                      const std::filesystem::path& model,
                                      topology::Split split) {
  const uint32_t cores = std::thread::hardware_concurrency();
  const uint32_t threads = threads_of_rank(options, cores);
  if (threads < options.threads) {
    TANDEM_LOG(kWarn, "{} threads are more than this machine's {} cores can use: taking {}",
               options.threads, cores, threads);
  }
  std::vector<std::string> result = {"--model",     model.string(),
                                     "--split",     topology::name(split),
                                     "--threads",   std::to_string(threads),
                                     "--device",    options.device,
                                     "--path",      options.path,
                                     "--kv-type",   options.kv_type,
                                     "--cpu-level", options.cpu_level};
  if (options.deterministic) result.emplace_back("--deterministic");
  if (options.pin) result.emplace_back("--pin");
  if (!options.shares.empty()) {
    result.emplace_back("--shares");
    result.push_back(fmt::format("{}", fmt::join(options.shares, ",")));
  }
  return result;
}

}  // namespace tandem::app
