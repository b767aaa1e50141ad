// Medians of alternating runs.
#pragma once

#include <time.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace tandem::bench {

/// What a benchmark run is asked for.
struct Settings {
  size_t threads = 2;
  size_t rounds = 9;
  std::string shape = {};  // only shapes whose name holds this
  size_t tokens = 0;       // only products of so many rows; 0: all
  bool best = false;       // the least instead of the median
  bool cpu_clock = false;  // process CPU time / threads: for machines that do other work too
};

/// Seconds on the chosen clock.
inline double now(const Settings& settings) {
  timespec at;
  clock_gettime(settings.cpu_clock ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &at);
  const double seconds = static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  return settings.cpu_clock ? seconds / static_cast<double>(settings.threads) : seconds;
}

/// Median seconds of one call of each function. Rounds alternate between the functions, so that
/// they meet the same disturbances; a round repeats a function for about 10 ms.
inline std::vector<double> medians(const Settings& settings,
                                   const std::vector<std::function<void()>>& functions) {
  std::vector<std::vector<double>> times(functions.size());
  std::vector<size_t> repeats;
  for (const auto& function : functions) {
    function();
    const double begin = now(settings);
    function();
    const double once = std::max(1e-7, now(settings) - begin);
    repeats.push_back(std::clamp<size_t>(static_cast<size_t>(0.01 / once), 1, 20000));
  }
  for (size_t round = 0; round < settings.rounds; ++round) {
    for (size_t f = 0; f < functions.size(); ++f) {
      const double begin = now(settings);
      for (size_t i = 0; i < repeats[f]; ++i) functions[f]();
      times[f].push_back((now(settings) - begin) / static_cast<double>(repeats[f]));
    }
  }
  std::vector<double> out;
  for (auto& all : times) {
    std::sort(all.begin(), all.end());
    out.push_back(settings.best ? all[0] : all[all.size() / 2]);
  }
  return out;
}

}  // namespace tandem::bench
