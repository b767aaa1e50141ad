#include "app/session_options.h"

namespace tandem::app {

void declare(CLI::App& app, SessionOptions& options) {
  app.add_option("model", options.model,
                 "Folder with safetensors, .gguf file, or org/name in the Hugging Face cache "
                 "[SmolLM2-135M-Instruct]");
  app.add_option("--ranks", options.ranks, "Processes that share the model")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--split", options.split, "How ranks share it; auto says what it took, and why")
      ->check(CLI::IsMember({"auto", "tensor", "pipeline"}))
      ->capture_default_str();
  app.add_option("--shares", options.shares, "Relative size of each rank's part, such as 2,1")
      ->delimiter(',');
  app.add_option("--context", options.context,
                 "Tokens a request may have, prompt and answer [the model's own]");
  app.add_option("--memory", options.memory_gib,
                 "GiB for weights and cache, all ranks together [half of what is free]");
  app.add_option("--threads", options.threads,
                 "Worker threads of each rank [its share of the cores]")
      ->check(CLI::Range(0, 1024));
  app.add_option("--device", options.device, "What computes: auto takes a GPU that MLX can use")
      ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--path", options.path,
                 "Kernels: fast (ours, on the CPU), or plain (MLX operations; slow on a CPU, the "
                 "oracle); auto: what the device has")
      ->check(CLI::IsMember({"auto", "fast", "plain"}))
      ->capture_default_str();
  app.add_option(
         "--comm", options.comm,
         "How ranks exchange tensors; ring, jaccl, nccl and mpi are MLX's own, for a tensor "
         "split (docs/serving.md)")
      ->check(CLI::IsMember({"auto", "shared-memory", "tcp", "ring", "jaccl", "nccl", "mpi"}))
      ->capture_default_str();
  app.add_option("--jaccl-devices", options.jaccl_devices,
                 "With --comm jaccl: JSON file of each rank's RDMA devices towards every other")
      ->check(CLI::ExistingFile);
  app.add_flag("--jaccl-ring", options.jaccl_ring,
               "With --comm jaccl: connect neighbours only, instead of a mesh");
  app.add_option("--mpi-library", options.mpi_library, "With --comm mpi: path of libmpi")
      ->check(CLI::ExistingFile);
  app.add_option("--rank-log", options.rank_log, "File for the ranks' log lines [stderr]");
}

}  // namespace tandem::app
