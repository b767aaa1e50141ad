#include "control/rank_command.h"

#include "control/process.h"

namespace tandem::control {

std::vector<std::string> rank_arguments(const RankCommand& command,
                                        uint32_t rank,
                                        const std::string& head) {
  std::vector<std::string> arguments = {"--rank",      std::to_string(rank),
                                        "--size",      std::to_string(command.ranks),
                                        "--control",   head,
                                        "--instance",  command.instance,
                                        "--secret-fd", std::to_string(Process::kSecretFd)};
  arguments.insert(arguments.end(), command.model.begin(), command.model.end());
  return arguments;
}

}  // namespace tandem::control
