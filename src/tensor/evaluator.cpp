#include "tensor/evaluator.h"

#include <typeinfo>

namespace tandem::tensor {
namespace {

bool is_plain_float(const array& a, const array& like) {
  return a.dtype() == mx::float32 && a.flags().row_contiguous && a.shape() == like.shape();
}

/// Sums stand in model code as `x + y`; run here they cost less than a dispatch.
bool run_sum(array& node) {
  const auto& in = node.inputs();
  if (!is_plain_float(in[0], node) || !is_plain_float(in[1], node)) return false;
  allocate(node);
  const float* a = in[0].data<float>();
  const float* b = in[1].data<float>();
  float* out = node.data<float>();
  for (size_t i = 0; i < node.size(); ++i) out[i] = a[i] + b[i];
  return true;
}

void finish(array& node, std::vector<array>& outputs) {
  for (array& out : outputs) out.set_status(array::available);
  node.detach();
}

void run_node(array node) {
  const mx::Primitive& primitive = node.primitive();
  if (const auto* op = dynamic_cast<const CpuOp*>(&primitive)) {
    auto outputs = node.outputs();
    op->run(node.inputs(), outputs);
    finish(node, outputs);
  } else if (typeid(primitive) == typeid(mx::Add) && run_sum(node)) {
    node.set_status(array::available);
    node.detach();
  } else {
    mx::eval(std::move(node));
  }
}

}  // namespace

void run_graph(array root) {
  std::vector<array> stack;
  stack.push_back(std::move(root));
  while (!stack.empty()) {
    if (stack.back().status() != array::unscheduled) {
      if (stack.back().status() == array::evaluated) stack.back().wait();
      stack.pop_back();
      continue;
    }
    const size_t before = stack.size();
    const auto inputs = stack.back().inputs();  // a copy: push_back moves the stack
    for (const array& input : inputs)
      if (input.status() != array::available) stack.push_back(input);
    if (stack.size() != before) continue;
    array node = std::move(stack.back());
    stack.pop_back();
    run_node(std::move(node));
  }
}

}  // namespace tandem::tensor
