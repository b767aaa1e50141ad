#include "app/model_info.h"

#include <algorithm>

#include "format/model_sizes.h"

namespace tandem::app {

chat::ModelInfo model_info(const format::Checkpoint& checkpoint, uint32_t context) {
  chat::ModelInfo info;
  const auto sizes = format::read_sizes(checkpoint.config());
  if (!sizes) return info;
  info.vocab = sizes->vocab;
  info.native_context = sizes->max_positions;
  info.max_context = context == 0 ? info.native_context : std::min(context, info.native_context);
  info.max_output = info.max_context;
  return info;
}

}  // namespace tandem::app
