#include "kernels/limited_swiglu.h"

#include <algorithm>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {

void limited_swiglu(WorkerPool& pool, const GatedArgs& args, float limit) {
  constexpr size_t kCost = 4;  // of an element, in floats touched
  const size_t gate_stride = args.gate_stride == 0 ? args.width : args.gate_stride;
  const size_t up_stride = args.up_stride == 0 ? args.width : args.up_stride;
  const size_t out_stride = args.out_stride == 0 ? args.width : args.out_stride;
  const std::vector<float> ones(args.width, 1.0f);
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width * kCost, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      float* out = args.out + r * out_stride;
      const float* up = args.up + r * up_stride;
      const GatedArgs row = {.gate = args.gate + r * gate_stride,
                             .up = ones.data(),
                             .out = out,
                             .rows = 1,
                             .width = args.width};
      kernels.gated(row, Gate::kSilu, 0, 1);
      for (size_t i = 0; i < args.width; ++i)
        out[i] = std::min(out[i], limit) * std::clamp(up[i], -limit, limit);
    }
  });
}

}  // namespace tandem::kernels
