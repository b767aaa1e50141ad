// bench_kernels [--threads N] [--rounds N] [--clock wall|cpu] [--stat median|best] [--level NAME]
// [--only NAME] [--shape PART] [--tokens N] NAME is limits, matmul, experts, attention, blocks,
// delta or small; products are of N rows alone, without oneDNN's beside them.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "kernels/benches.h"

using namespace tandem;

int main(int argc, char** argv) {
  bench::Settings settings;
  kernels::CpuLevel level = kernels::detect_cpu_level();
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") settings.threads = std::stoul(value);
    if (flag == "--rounds") settings.rounds = std::stoul(value);
    if (flag == "--clock") settings.cpu_clock = value == "cpu";
    if (flag == "--stat") settings.best = value == "best";
    if (flag == "--level") level = kernels::cpu_level_named(value).value_or(level);
    if (flag == "--only") only = value;
    if (flag == "--shape") settings.shape = value;
    if (flag == "--tokens") settings.tokens = std::stoul(value);
  }
  kernels::WorkerPool pool(settings.threads, level);
  fmt::print("{} threads, {}, {} clock, {} of {}\n", settings.threads, name(level),
             settings.cpu_clock ? "cpu" : "wall", settings.best ? "best" : "median",
             settings.rounds);
  if (only.empty() || only == "limits") bench::bench_limits(settings, pool);
  if (only.empty() || only == "small") bench::bench_small(settings, pool);
  if (only.empty() || only == "matmul") bench::bench_matmul(settings, pool);
  if (only.empty() || only == "experts") bench::bench_experts(settings, pool);
  if (only.empty() || only == "attention") bench::bench_attention(settings, pool);
  if (only.empty() || only == "blocks") bench::bench_blocks(settings, pool);
  if (only.empty() || only == "delta") bench::bench_delta(settings, pool);
  return 0;
}
