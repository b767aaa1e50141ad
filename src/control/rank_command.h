// The command line of a rank's process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::control {

/// What the ranks of one instance have in common.
struct RankCommand {
  std::string instance;
  uint32_t ranks = 1;
  std::vector<std::string> model = {};  // its options: which model, how it is shared, what computes
};

/// Arguments of the process of one rank, which dials `head` for its control link.
std::vector<std::string> rank_arguments(const RankCommand& command,
                                        uint32_t rank,
                                        const std::string& head);

}  // namespace tandem::control
