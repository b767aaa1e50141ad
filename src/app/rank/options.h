// The command line of tandem-rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/fake_runner.h"

namespace tandem::app {

struct RankOptions {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string control;                    // "host:port" of the head's (or agent's) listener
  int secret_fd = 3;                      // the control links' secret is read here, to its end
  std::string secret_file;                // instead of secret_fd, where no descriptor is passed on
  std::string instance = "default";       // said in Hello
  std::string listen_host = "127.0.0.1";  // for plan and data links
  std::string plan_log;                   // executed plans are written here; empty: not kept
  std::chrono::milliseconds head_timeout{10'000};  // without a word from the head: exit

  bool fake = false;
  engine::FakeOptions fake_options;
  std::string model;               // a folder or file; empty with fake
  std::string split = "tensor";    // or "pipeline"
  std::string backend;             // of MLX's own: ring, jaccl, nccl or mpi; empty: our transports
  std::string jaccl_devices;       // file: each rank's RDMA devices towards every other
  bool jaccl_ring = false;         // JACCL: neighbours only, instead of a mesh
  std::string mpi_library;         // path of libmpi; empty: where the system looks
  std::vector<double> shares;      // of each rank; empty: equal
  uint32_t threads = 0;            // 0: what the machine has
  std::string device = "auto";     // cpu, gpu; see device_choice.h
  std::string path = "auto";       // fast: our CPU kernels; plain: ordinary MLX operations
  std::string cpu_level = "auto";  // fast path: see kernels/cpu_level.h
  std::string kv_type = "auto";    // fast path: f16 or f32; see runner/kv_type.h
  bool deterministic = false;      // refuse where tokens may depend on what else is in a batch
  bool pin = false;                // worker threads stay on cores rank * threads and following
  uint64_t memory_bytes = 0;       // for this rank's weights and pages
  uint32_t max_context = 0;        // tokens a request may have; 0: the model's own
  bool prefix_reuse = true;        // between requests, rank 0's to decide
  std::string logits_tokens;       // file of token ids: write logits and end, without a head
  std::string logits_out;          // the file to write
  uint32_t chunk = 0;              // with logits_tokens: tokens a step; 0: all at once
};

/// The options, or the code to exit with after help or an error was printed.
std::variant<RankOptions, int> parse_rank_options(int argc, const char* const* argv);

}  // namespace tandem::app
