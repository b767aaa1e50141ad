#include "runner/programs.h"

#include <algorithm>

namespace tandem::runner {

Program* Programs::find(tensor::Step& step) {
  const auto fits = [&](const auto& program) {
    return program->step.tokens() == step.tokens() &&
           program->step.outputs().size() == step.outputs().size() &&
           program->step.pooled().size() == step.pooled().size();
  };
  const auto found = std::find_if(programs_.begin(), programs_.end(), fits);
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  Program* program = programs_.front().get();
  program->step = std::move(step);
  return program;
}

void Programs::keep(std::unique_ptr<Program> program) {
  programs_.push_front(std::move(program));
  if (programs_.size() > kMostPrograms) programs_.pop_back();
}

}  // namespace tandem::runner
