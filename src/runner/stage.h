// One rank's part of a model with its cache and its place among the ranks: runs a step from its
// inputs to what the next rank or the sampler needs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/transport.h"
#include "kernels/cpu_level.h"
#include "model/decoder.h"
#include "runner/draw.h"
#include "runner/programs.h"
#include "tensor/device.h"

namespace tandem::runner {

/// How a model is run.
struct StageOptions {
  tensor::Path path = tensor::Path::kFast;
  /// Of the plain path; the fast one runs on the CPU.
  tensor::mx::Device device = tensor::best_device();
  tensor::mx::Dtype dtype =
      tensor::mx::float32;  // of all but weights; kFast: of activations, float32
  tensor::mx::Dtype kv_dtype = tensor::mx::float32;       // kFast: of keys and values; or float16
  uint32_t threads = 1;                                   // of the fast path
  kernels::CpuLevel level = kernels::detect_cpu_level();  // of the fast path
  std::vector<uint32_t> cores = {};  // of its threads; empty: any, see WorkerPool
  uint32_t page_tokens = 32;
  uint32_t pages = 64;
  /// Of layers that see a window; 0: they take the other pages, and all positions stay.
  uint32_t window_pages = 0;
  uint32_t state_slots = 0;  // of recurrent layers
  /// Called in each step when its input is there, before its layers run; tests delay a stage here.
  std::function<void()> before_layers = {};
  /// The fast path adds to it the time that steps of a known shape spend inside kernels.
  std::chrono::nanoseconds* kernel_time = nullptr;
};

/// A step that the device was given, and what it will give back.
struct Launch {
  tensor::Step step;
  std::optional<tensor::array> logits = {};  // [rows for the host, vocab]
  std::optional<Drawn> drawn = {};
  std::optional<tensor::array> pooled = {};
  std::vector<tensor::array> last = {};  // evaluated when the step is over
};

/// Engine thread, but where said otherwise.
class Stage {
 public:
  static Result<std::unique_ptr<Stage>> load(std::shared_ptr<const format::Checkpoint> checkpoint,
                                             const std::vector<topology::Part>& parts,
                                             uint32_t rank,
                                             const StageOptions& options);

  /// Borrowed; null when the epoch is over. Requires one for more than one rank.
  void set_transport(comm::Transport* transport);

  /// Tensor split only: exchanges go through MLX's distributed operations (NCCL, JACCL, MPI, ring).
  void set_group(std::optional<tensor::mx::distributed::Group> group);

  /// Drops what a failed step left behind. Page contents are undefined afterwards.
  void reset();

  /// Copies pages, then runs the rows. A pipeline stage receives its input from the stage before
  /// and sends its output to the one after. On the fast path a step's calls are recorded and run
  /// again for small steps of the same shape (programs.h). Errors: kPeerLost, kDeadline, kCorrupt
  /// from the transport; kInternal from MLX.
  Status run(tensor::Step step, const kv::Copies& copies = {});

  /// A step as run() has it, for a rank alone on the plain path: builds its graph, hands it to the
  /// device and returns while that works (MLX's CPU blocks for most of it). Of the tokens that want
  /// logits, rows `to_host` go to the host and `draws` are drawn from. Errors: kInternal from MLX.
  Result<Launch> launch(tensor::Step step,
                        const kv::Copies& copies,
                        const std::vector<uint32_t>& to_host,
                        const std::vector<DrawRow>& draws);

  /// Waits until a launched step is over; then logits(), drawn() and pooled() are its. Steps end in
  /// the order of their launches. Errors: kInternal from MLX, also of an earlier step.
  Status land(Launch& launch);

  /// Of the last run on rank 0: [tokens that wanted logits, vocab]. Valid until the next.
  std::span<const float> logits() const { return logits_; }
  /// The same, of rows that pool: [such rows, hidden].
  std::span<const float> pooled() const { return pooled_; }
  /// Of the last landing, in the order of its `draws`.
  std::span<const int32_t> drawn() const { return drawn_; }

  const model::Config& config() const { return decoder_->config(); }
  uint64_t weight_bytes() const { return decoder_->weight_bytes(); }
  uint64_t cache_bytes() const { return cache_->bytes(); }

 private:
  Stage(std::unique_ptr<model::Decoder> decoder,
        tensor::Context context,
        topology::Part part,
        const StageOptions& o);

  void run_rows(const tensor::Step& step);
  void run_program(tensor::Step step);
  Results record(tensor::Step step);
  void compute(const tensor::Step& step);
  void build(Launch& out, const std::vector<uint32_t>& to_host, const std::vector<DrawRow>& draws);
  tensor::array input(const tensor::Step& step);
  void receive(const tensor::Step& step);
  void finish(const tensor::array& root);
  void deliver(const Results& results, bool has_logits);
  void forget_results();
  comm::Transport& transport() const;
  void keep_logits(const tensor::array& logits);

  std::unique_ptr<model::Decoder> decoder_;
  tensor::Context context_;
  tensor::mx::Device device_;
  topology::Part part_;
  std::unique_ptr<kv::Cache> cache_;
  std::function<void()> before_layers_;
  comm::Transport* transport_ = nullptr;

  tensor::StepMemory memory_;  // of programs, and of larger steps on the fast path
  Programs programs_;
  std::chrono::nanoseconds* kernel_time_;

  std::vector<float> received_;  // from the stage before
  // Hold results that are not a program's.
  std::optional<tensor::array> computed_;
  std::optional<tensor::array> computed_pooled_;
  std::span<const float> logits_;
  std::span<const float> pooled_;
  std::vector<int32_t> drawn_;
};

}  // namespace tandem::runner
