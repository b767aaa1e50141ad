#include "kernels/grouped_matmul.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul_task.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

bool same_format(const PackedMatrix& a, const PackedMatrix& b) {
  return a.outputs() == b.outputs() && a.inputs() == b.inputs() && a.has_format_of(b);
}

/// One expert's product, with the place of its items among those of all experts.
struct ExpertTask {
  MatmulTask task;
  float* x = nullptr;  // its rows, when they stay float32
  size_t expert = 0;
  size_t first_row = 0;
  size_t first_item = 0;
};

/// The products of one call: their tasks, and the rows that the tasks read.
class GroupedTasks {
 public:
  GroupedTasks(std::span<const PackedMatrix> experts, const GroupedMatmulArgs& args)
      : experts_(experts), args_(args) {
    for (size_t e = 0; e < experts.size(); ++e) {
      for (size_t row = args.offsets[e]; row < args.offsets[e + 1];) {
        const size_t rows = std::min<size_t>(args.offsets[e + 1] - row, MatmulTask::kRowChunk);
        add(e, row, rows);
        row += rows;
      }
    }
  }

  bool empty() const { return tasks_.empty(); }
  size_t rows() const { return args_.offsets.back() - args_.offsets.front(); }

  /// Gathers the rows of x into the form that the kernels read.
  void prepare(WorkerPool& pool) {
    size_t floats = 0;
    for (const ExpertTask& each : tasks_) floats += row_floats(each.task);
    float* memory = pool.shared_scratch(floats);
    for (ExpertTask& each : tasks_) {
      MatmulTask& task = each.task;
      each.x = memory;
      task.args.x = memory;
      if (task.groups > 0)
        task.rows = RowCodes::at(memory, task.args.rows, task.w->inputs(), task.groups);
      memory += row_floats(task);
    }
    const KernelTable& kernels = kernels_of(pool.level());
    share_rows(pool, rows(), experts_[0].inputs(),
               [&](size_t begin, size_t end) { prepare_rows(kernels, begin, end); });
  }

  /// Runs the items of all experts as one loop, which the pool shares out by chunks.
  void run(WorkerPool& pool) const {
    const KernelTable& kernels = kernels_of(pool.level());
    pool.parallel_for(items_, [&](size_t begin, size_t end, size_t worker) {
      float* scratch = pool.scratch(worker, tasks_[0].task.scratch_floats());
      const auto after = std::upper_bound(
          tasks_.begin(), tasks_.end(), begin,
          [](size_t item, const ExpertTask& each) { return item < each.first_item; });
      for (auto each = after - 1; each != tasks_.end() && each->first_item < end; ++each)
        run_items(kernels, *each, begin, end, scratch);
    });
  }

 private:
  void add(size_t expert, size_t row, size_t rows) {
    const PackedMatrix& w = experts_[expert];
    TANDEM_CHECK(same_format(w, experts_[0]), "[moe_matmul] experts differ in shape or format");
    ExpertTask made{.task = {.w = &w}, .expert = expert, .first_row = row, .first_item = items_};
    if (made.task.takes_codes()) made.task.groups = w.inputs() / w.group();
    made.task.args = {.x = nullptr,
                      .rows = rows,
                      .y = args_.y + expert * args_.y_step + own_row(expert, row) * args_.y_stride};
    made.task.args.x_stride = w.inputs();
    made.task.args.y_stride = args_.y_stride;
    if (args_.bias != nullptr) made.task.args.bias = args_.bias + expert * w.outputs();
    made.task.row_block = std::min(rows, MatmulTask::kRowBlock);
    // Tasks begin where chunks of a loop may, so that kernels get several panels at a time.
    constexpr size_t kQuantum = WorkerPool::kQuantum;
    items_ += (made.task.items() + kQuantum - 1) / kQuantum * kQuantum;
    tasks_.push_back(made);
  }

  /// Where an expert's rows are counted from 0, the number of an assignment among them.
  size_t own_row(size_t expert, size_t assignment) const {
    return assignment - (args_.x_step == 0 ? 0 : args_.offsets[expert]);
  }

  /// Memory for a task's rows.
  static size_t row_floats(const MatmulTask& task) {
    const size_t inputs = task.w->inputs();
    if (task.groups == 0) return task.args.rows * inputs;
    return RowCodes::floats(task.args.rows, inputs, task.groups);
  }

  /// The task's items among [begin, end).
  static void run_items(const KernelTable& kernels,
                        const ExpertTask& each,
                        size_t begin,
                        size_t end,
                        float* scratch) {
    const size_t first = std::max(begin, each.first_item) - each.first_item;
    const size_t last = std::min(end - each.first_item, each.task.items());
    if (first < last) kernels.matmul(each.task, first, last, scratch);
  }

  /// Rows [begin, end), counted over all tasks.
  void prepare_rows(const KernelTable& kernels, size_t begin, size_t end) const {
    const size_t base = args_.offsets.front();
    for (const ExpertTask& each : tasks_) {
      const size_t first = each.first_row - base;
      const size_t low = std::max(begin, first), high = std::min(end, first + each.task.args.rows);
      for (size_t row = low; row < high; ++row) prepare_row(kernels, each, row - first);
    }
  }

  void prepare_row(const KernelTable& kernels, const ExpertTask& each, size_t row) const {
    const size_t assignment = each.first_row + row;
    const size_t from =
        args_.x_rows == nullptr ? own_row(each.expert, assignment) : args_.x_rows[assignment];
    const float* x = args_.x + each.expert * args_.x_step + from * args_.x_stride;
    if (each.task.groups > 0) return kernels.prepare(each.task, x, 0, row, row + 1);
    const size_t inputs = each.task.w->inputs();
    std::memcpy(each.x + row * inputs, x, inputs * sizeof(float));
  }

  std::span<const PackedMatrix> experts_;
  const GroupedMatmulArgs& args_;
  std::vector<ExpertTask> tasks_;
  size_t items_ = 0;
};

}  // namespace

ExpertRows group_by_expert(std::span<const uint32_t> ids, size_t top_k, size_t experts) {
  ExpertRows out;
  out.offsets.assign(experts + 1, 0);
  out.rows.resize(ids.size());
  out.places.resize(ids.size());
  for (const uint32_t id : ids) {
    TANDEM_CHECK(id < experts, "[experts] expert {} of {}", id, experts);
    ++out.offsets[id + 1];
  }
  for (size_t e = 0; e < experts; ++e) out.offsets[e + 1] += out.offsets[e];
  std::vector<uint32_t> next(out.offsets.begin(), out.offsets.end() - 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    out.places[i] = next[ids[i]]++;
    out.rows[out.places[i]] = static_cast<uint32_t>(i / top_k);
  }
  return out;
}

void moe_matmul(WorkerPool& pool,
                std::span<const PackedMatrix> experts,
                const GroupedMatmulArgs& given) {
  TANDEM_CHECK(given.offsets.size() == experts.size() + 1,
               "[moe_matmul] expected offsets for {} experts, got {}", experts.size(),
               given.offsets.size());
  if (experts.empty()) return;
  GroupedMatmulArgs args = given;
  if (args.x_stride == 0) args.x_stride = experts[0].inputs();
  if (args.y_stride == 0) args.y_stride = experts[0].outputs();
  GroupedTasks tasks(experts, args);
  if (tasks.empty()) return;
  tasks.prepare(pool);
  tasks.run(pool);
}

void head_matmul(WorkerPool& pool,
                 std::span<const PackedMatrix> heads,
                 const HeadMatmulArgs& args) {
  std::vector<uint32_t> offsets;
  for (size_t h = 0; h <= heads.size(); ++h)
    offsets.push_back(static_cast<uint32_t>(h * args.rows));
  moe_matmul(pool, heads,
             {.x = args.x,
              .x_stride = args.x_stride,
              .offsets = offsets,
              .y = args.y,
              .y_stride = args.y_stride,
              .x_step = args.x_step,
              .y_step = args.y_step});
}

void combine_experts(WorkerPool& pool, const CombineArgs& args) {
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width * args.top_k,
             [&](size_t begin, size_t end) { kernels.combine(args, begin, end); });
}

}  // namespace tandem::kernels
