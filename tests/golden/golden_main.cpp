// Usage: golden_test --checkpoints=DIR --logits=DIR [--only=START OF NAME]
#define DOCTEST_CONFIG_IMPLEMENT
#include "golden_files.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--checkpoints=")) tandem::checkpoints_folder = argument.substr(14);
    if (argument.starts_with("--logits=")) tandem::logits_folder = argument.substr(9);
    if (argument.starts_with("--only=")) tandem::only_checkpoints = argument.substr(7);
  }
  return context.run();
}
