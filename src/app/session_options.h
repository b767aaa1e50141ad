// What serve, chat, generate and bench have in common: a model that answers requests.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "app/model_options.h"
#include "replay/memory.h"

namespace tandem::app {

struct SessionOptions {
  ModelOptions model;
  uint32_t context = 0;             // tokens a request may have; 0: what the model was made for
  double memory_gib = 0;            // for weights and cache of all ranks; 0: half of what is free
  std::string prefix_cache = "on";  // or off: nothing of one request is reused by another
  std::string comm = "auto";        // see comm_choice.h
  std::string jaccl_devices;        // --comm jaccl: file of RDMA devices
  bool jaccl_ring = false;          // --comm jaccl: neighbours only
  std::string mpi_library;          // --comm mpi: path of libmpi
  std::string tool_dialect;         // see dialect/dialect.h; empty: as the model shows
  std::string reasoning_dialect;    // see text/tokenizer.h, or "none"; empty: as the model shows
  std::string thinking_wrap_up;     // see chat/local_service.h
  std::string rank_log;             // file for the ranks' log lines; empty: stderr
  std::shared_ptr<replay::Memory> turns;  // answers that are remembered; null: none. No option
  std::string handle_key;                 // of handles on them. No option
};

/// Declares them as options of a command.
void declare(CLI::App& app, SessionOptions& options);

}  // namespace tandem::app
