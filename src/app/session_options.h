// What serve, chat, generate and bench have in common: a model and how it runs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::app {

struct SessionOptions {
  std::string model;  // see find_model(); empty: the default model
  uint32_t ranks = 1;
  std::string split = "auto";   // tensor, pipeline or auto
  std::vector<double> shares;   // one a rank; empty: equal ones
  uint32_t context = 0;         // tokens a request may have; 0: what the model was made for
  double memory_gib = 0;        // for weights and cache of all ranks; 0: half of what is free
  uint32_t threads = 0;         // of each rank; 0: its share of the cores
  std::string device = "auto";  // cpu, gpu or auto
  std::string path = "auto";    // fast, plain or auto
  std::string comm = "auto";    // see comm_choice.h
  std::string jaccl_devices;    // --comm jaccl: file of RDMA devices
  bool jaccl_ring = false;      // --comm jaccl: neighbours only
  std::string mpi_library;      // --comm mpi: path of libmpi
  std::string rank_log;         // file for the ranks' log lines; empty: stderr
};

/// Declares them as options of a command; the model is a positional argument.
void declare(CLI::App& app, SessionOptions& options);

}  // namespace tandem::app
