// Which model runs and how it is computed: options of every command that starts ranks.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/checkpoint.h"
#include "topology/split_choice.h"

namespace tandem::app {

struct ModelOptions {
  std::string name = {};  // see find_model(); empty: the default model
  uint32_t ranks = 1;
  std::string split = "auto";       // tensor, pipeline or auto
  std::vector<double> shares = {};  // one a rank; empty: equal ones
  uint32_t threads = 0;             // of each rank; 0: its share of the cores
  std::string device = "auto";      // cpu, gpu or auto
  std::string path = "auto";        // fast, plain or auto
  std::string kv_type = "auto";     // f16, f32 or auto
  std::string cpu_level = "auto";   // a name of kernels/cpu_level.h, or auto
  bool deterministic = false;       // refuse where tokens may depend on what else is in a batch
  bool pin = false;                 // each worker thread stays on a core
};

/// Declares them as options of a command; the model is a positional argument.
void declare(CLI::App& app, ModelOptions& options);

/// Errors: kInvalid for options that do not fit each other.
Status check(const ModelOptions& options);

/// As asked for, or by the rule of topology/split_choice.h. All ranks are on this machine.
topology::SplitChoice choose_split(const ModelOptions& options,
                                   const format::Checkpoint& checkpoint);

/// One rank with the threads of all that were asked for.
ModelOptions alone(ModelOptions options);

/// Worker threads of each rank on a machine of so many cores: its share of them, or what was asked
/// for, at most kMostThreadsPerCore for each core. More would only take each other's time, up to
/// steps that take so long that the group is taken for stuck.
uint32_t threads_of_rank(const ModelOptions& options, uint32_t cores);
inline constexpr uint32_t kMostThreadsPerCore = 4;

/// What tandem-rank is told of them. Says so where it is told fewer threads than were asked for.
std::vector<std::string> rank_options(const ModelOptions& options,
                                      const std::filesystem::path& model,
                                      topology::Split split);

}  // namespace tandem::app
