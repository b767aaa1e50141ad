#include "comm/tag.h"

namespace tandem::comm {

const char* name(Op op) {
  switch (op) {
    case Op::kBarrier:
      return "barrier";
    case Op::kAllSum:
      return "all_sum";
    case Op::kAllGather:
      return "all_gather";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kPoint:
      return "send/recv";
    case Op::kFault:
      return "fault";
  }
  return "unknown operation";
}

}  // namespace tandem::comm
