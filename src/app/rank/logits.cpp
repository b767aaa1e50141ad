#include "app/rank/logits.h"

#include <mlx/mlx.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "app/rank/checkpoint_model.h"
#include "app/rank/device_choice.h"
#include "comm/transport.h"
#include "format/safetensors_writer.h"
#include "runner/model_runner.h"

namespace tandem::app {
namespace {

constexpr uint32_t kPageTokens = 32;

uint32_t pages_for(size_t tokens) {
  return static_cast<uint32_t>((tokens + kPageTokens - 1) / kPageTokens);
}

/// The chunks of one request, in order; page i of the request is page i of the pool, and recurrent
/// state, where the model has such, stays in one slot.
std::vector<plan::StepPlan> make_plans(const std::vector<gen::TokenId>& tokens,
                                       uint32_t chunk,
                                       bool is_recurrent) {
  const size_t most = chunk == 0 ? tokens.size() : chunk;
  std::vector<plan::StepPlan> plans;
  for (size_t start = 0; start < tokens.size(); start += most) {
    const size_t end = std::min(tokens.size(), start + most);
    plan::Row row;
    row.request = 1;
    row.start = static_cast<uint32_t>(start);
    row.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(start),
                      tokens.begin() + static_cast<std::ptrdiff_t>(end));
    for (uint32_t page = 0; page < pages_for(end); ++page) row.pages.push_back(page);
    if (is_recurrent) {
      if (start > 0) row.state = 0;
      row.saves.push_back({.tokens = static_cast<uint32_t>(end - start), .slot = 0});
    }
    row.wants_logits = true;
    plans.push_back({.epoch = 1, .sequence = plans.size(), .copies = {}, .rows = {std::move(row)}});
  }
  return plans;
}

/// One rank of the group; rank 0 writes what it gets.
class LogitsRank {
 public:
  LogitsRank(const RankOptions& options, uint32_t rank, const std::vector<gen::TokenId>& tokens)
      : options_(options), rank_(rank), tokens_(tokens) {}

  Status run(const std::shared_ptr<const format::Checkpoint>& checkpoint) {
    auto loaded = runner::ModelRunner::load(checkpoint, model_options());
    if (!loaded) return loaded.error();
    runner_ = std::move(*loaded);
    if (options_.size > 1) {
      auto transport = comm::connect(transport_options());
      if (!transport) return transport.error();
      runner_->set_transport(std::move(*transport));
    }
    const Status begun = runner_->reset(1);
    if (!begun) return begun;
    return rank_ == 0 ? write() : follow();
  }

 private:
  runner::ModelOptions model_options() const {
    runner::ModelOptions options = runner_options(options_);
    options.rank = rank_;
    options.page_tokens = kPageTokens;
    options.pages = std::max(pages_for(tokens_.size()), 8U);
    options.frees_windows = false;
    options.all_logits = true;
    return options;
  }

  comm::Options transport_options() const {
    return {.rank = rank_,
            .size = options_.size,
            .epoch = 1,
            .name = fmt::format("/tandem-logits-{}", ::getpid()),
            .secret = std::vector<std::byte>(
                32, std::byte{7}),  // threads of one process meet; nobody else knows the name
            .connect_timeout = std::chrono::minutes(10),
            .deadline = std::chrono::minutes(10)};
  }

  Status write() {
    auto writer = format::SafetensorsWriter::create(options_.logits_out, "logits", tokens_.size(),
                                                    runner_->info().vocab);
    if (!writer) return writer.error();
    const Status ran =
        for_each_step([&](const engine::StepResult& result) { writer->append(result.logits); });
    return ran ? writer->finish() : ran;
  }

  Status follow() {
    return for_each_step([](const engine::StepResult&) {});
  }

  template <class Take>
  Status for_each_step(const Take& take) {
    const bool is_recurrent = runner_->info().state_slots != 0;
    for (const plan::StepPlan& plan : make_plans(tokens_, options_.chunk, is_recurrent)) {
      const Status issued = runner_->issue(plan);
      if (!issued) return issued;
      const auto result = runner_->complete();
      if (!result) return result.error();
      take(*result);
    }
    return {};
  }

  const RankOptions& options_;
  const uint32_t rank_;
  const std::vector<gen::TokenId>& tokens_;
  std::unique_ptr<runner::ModelRunner> runner_;
};

}  // namespace

Result<std::vector<gen::TokenId>> read_tokens(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Error{ErrorCode::kNotFound, fmt::format("cannot read {}", file)};
  const auto json = nlohmann::json::parse(in, nullptr, false);
  const bool is_list =
      json.is_array() && !json.empty() && std::all_of(json.begin(), json.end(), [](const auto& id) {
        return id.is_number_unsigned() && id.template get<uint64_t>() <= INT32_MAX;
      });
  if (!is_list)
    return Error{ErrorCode::kInvalid,
                 fmt::format("{}: expected a JSON list of token ids, such as [1, 2, 3]", file)};
  return json.get<std::vector<gen::TokenId>>();
}

Status write_logits(const RankOptions& given) {
  mlx::core::disable_compile();
  RankOptions options = given;
  const Status resolved = resolve_device(options);
  if (!resolved) return resolved;
  const auto tokens = read_tokens(options.logits_tokens);
  if (!tokens) return tokens.error();
  const auto checkpoint = format::open_checkpoint(options.model);
  if (!checkpoint) return checkpoint.error();
  std::vector<Status> outcomes(options.size);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    ranks.emplace_back(
        [&, rank] { outcomes[rank] = LogitsRank(options, rank, *tokens).run(*checkpoint); });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const Status& outcome : outcomes) {
    if (!outcome) return outcome;
  }
  return {};
}

}  // namespace tandem::app
