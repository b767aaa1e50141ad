#include "app/instance_metrics.h"

#include <chrono>
#include <functional>
#include <string>

namespace tandem::app {
namespace {

using control::InstanceSnapshot;
using control::RankSnapshot;
using Instances = std::vector<InstanceSnapshot>;
using protocol::Labels;
using protocol::MetricsText;

/// A family with one sample an instance.
struct Single {
  const char* name;
  const char* kind;
  const char* help;
  double (*value)(const InstanceSnapshot&);
};

/// An instance's number as a sample.
template <auto Get>
double number(const InstanceSnapshot& instance) {
  return static_cast<double>(Get(instance));
}

const plan::EngineTotals& totals(const InstanceSnapshot& i) { return i.figures.engine.totals; }

constexpr Single kSingles[] = {
    {"tandem_instance_ready", "gauge", "1 when the instance can serve.",
     number<[](const InstanceSnapshot& i) { return i.is_healthy && !i.is_draining; }>},
    {"tandem_instance_epoch", "gauge", "Number of the current group of ranks.",
     number<[](const InstanceSnapshot& i) { return i.epoch; }>},
    {"tandem_requests_resumed_total", "counter", "Hand-overs of requests after a lost epoch.",
     number<[](const InstanceSnapshot& i) { return i.figures.resumed_requests; }>},
    {"tandem_requests_blamed_total", "counter",
     "Requests failed because they ran at too many rank deaths.",
     number<[](const InstanceSnapshot& i) { return i.figures.blamed_requests; }>},
    {"tandem_kv_page_tokens", "gauge", "Positions that a page of keys and values holds.",
     number<[](const InstanceSnapshot& i) { return i.page_tokens; }>},
    {"tandem_engine_steps_total", "counter", "Completed steps.",
     number<[](const InstanceSnapshot& i) { return totals(i).steps; }>},
    {"tandem_engine_step_rows_total", "counter",
     "Rows of completed steps: divided by the steps, the mean batch.",
     number<[](const InstanceSnapshot& i) { return totals(i).rows; }>},
    {"tandem_engine_prompt_tokens_total", "counter", "Prompt tokens computed or reused.",
     number<[](const InstanceSnapshot& i) { return totals(i).prompt_tokens; }>},
    {"tandem_engine_generated_tokens_total", "counter", "Tokens drawn.",
     number<[](const InstanceSnapshot& i) { return totals(i).answer_tokens; }>},
    {"tandem_engine_computed_positions_total", "counter",
     "Positions whose keys and values were computed, also again after a pause or a lost epoch.",
     number<[](const InstanceSnapshot& i) { return totals(i).computed_tokens; }>},
    {"tandem_prefix_cache_hit_tokens_total", "counter",
     "Positions whose keys and values were found in the cache.",
     number<[](const InstanceSnapshot& i) { return totals(i).reused_tokens; }>},
    {"tandem_window_pages_left_total", "counter",
     "Pages of layers that see a window, given up behind the windows of requests.",
     number<[](const InstanceSnapshot& i) { return totals(i).window_pages_left; }>},
    {"tandem_engine_pauses_total", "counter", "Requests paused for want of pages.",
     number<[](const InstanceSnapshot& i) { return totals(i).pauses; }>},
};

Labels of(const InstanceSnapshot& instance, const char* label, std::string value) {
  return {{"instance", instance.name}, {label, std::move(value)}};
}

void write_engine_states(MetricsText& out, const Instances& instances) {
  out.family("tandem_engine_requests", "gauge", "Requests with the engine, by state.");
  for (const InstanceSnapshot& i : instances) {
    const plan::EngineFigures& engine = i.figures.engine;
    out.sample("tandem_engine_requests", of(i, "state", "running"), engine.running);
    out.sample("tandem_engine_requests", of(i, "state", "waiting"), engine.waiting);
    out.sample("tandem_engine_requests", of(i, "state", "paused"), engine.paused);
  }
}

/// A pool of the cache, in instances that have it.
struct Pool {
  const char* name;
  const char* help;
  plan::PoolFigures plan::EngineFigures::* figures;
};

constexpr Pool kPools[] = {
    {"tandem_kv_pages", "Pages of the cache: used by requests, kept for reuse, or free.",
     &plan::EngineFigures::pages},
    {"tandem_window_pages", "The same of layers that see a window.",
     &plan::EngineFigures::window_pages},
    {"tandem_state_slots",
     "States of recurrent layers: used by requests, snapshots kept for reuse, or free.",
     &plan::EngineFigures::states},
};

void write_pools(MetricsText& out, const Instances& instances) {
  for (const Pool& pool : kPools) {
    out.family(pool.name, "gauge", pool.help);
    for (const InstanceSnapshot& i : instances) {
      const plan::PoolFigures& now = i.figures.engine.*pool.figures;
      if (now.total() == 0) continue;
      out.sample(pool.name, of(i, "state", "used"), now.referenced);
      out.sample(pool.name, of(i, "state", "cached"), now.cached);
      out.sample(pool.name, of(i, "state", "free"), now.free);
    }
  }
}

void write_losses(MetricsText& out, const Instances& instances) {
  out.family("tandem_lost_epochs_total", "counter", "Epochs that ended by a fault, by its kind.");
  for (const InstanceSnapshot& i : instances) {
    for (size_t k = 0; k < control::kEpochEnds; ++k) {
      out.sample("tandem_lost_epochs_total",
                 of(i, "cause", name(static_cast<control::EpochEnd>(k))),
                 static_cast<double>(i.figures.lost_epochs[k]));
    }
  }
  out.family("tandem_rank_deaths_total", "counter", "Ranks lost, by cause.");
  for (const InstanceSnapshot& i : instances) {
    for (size_t k = 0; k < control::kDeathCauses; ++k) {
      out.sample("tandem_rank_deaths_total",
                 of(i, "cause", name(static_cast<control::DeathCause>(k))),
                 static_cast<double>(i.figures.deaths[k]));
    }
  }
}

void write_ranks(MetricsText& out, const Instances& instances) {
  const auto each_rank = [&](const std::function<void(const Labels&, const RankSnapshot&)>& write) {
    for (const InstanceSnapshot& i : instances) {
      for (const RankSnapshot& rank : i.ranks) {
        write(of(i, "rank", std::to_string(rank.rank)), rank);
      }
    }
  };
  out.family("tandem_rank_up", "gauge", "1 when the rank is part of a running group.");
  each_rank([&](const Labels& labels, const RankSnapshot& rank) {
    out.sample("tandem_rank_up", labels, rank.state == control::RankState::kReady ? 1 : 0);
  });
  out.family("tandem_rank_starts_total", "counter", "Processes started for the rank.");
  each_rank([&](const Labels& labels, const RankSnapshot& rank) {
    out.sample("tandem_rank_starts_total", labels, static_cast<double>(rank.starts));
  });
  out.family(
      "tandem_rank_memory_bytes", "gauge",
      "What the rank holds: its weights, its pool of pages, and the process's resident set.");
  each_rank([&](const Labels& labels, const RankSnapshot& rank) {
    const auto sample = [&](const char* kind, uint64_t bytes) {
      Labels all = labels;
      all.emplace_back("kind", kind);
      out.sample("tandem_rank_memory_bytes", all, static_cast<double>(bytes));
    };
    sample("weights", rank.memory.weight_bytes);
    sample("cache", rank.memory.cache_bytes);
    sample("resident", rank.memory.resident_bytes);
  });
}

}  // namespace

void write_metrics(MetricsText& out, const Instances& instances) {
  for (const Single& single : kSingles) {
    out.family(single.name, single.kind, single.help);
    for (const InstanceSnapshot& i : instances) {
      out.sample(single.name, {{"instance", i.name}}, single.value(i));
    }
  }
  write_engine_states(out, instances);
  write_pools(out, instances);
  write_losses(out, instances);
  write_ranks(out, instances);
  out.family("tandem_engine_step_seconds", "histogram", "Time of a step.");
  for (const InstanceSnapshot& i : instances) {
    Histogram steps{token_times()};
    steps.add(totals(i).step_counts, std::chrono::duration<double>(totals(i).step_time).count());
    out.buckets("tandem_engine_step_seconds", steps, {{"instance", i.name}});
  }
  out.family("tandem_inter_token_seconds", "histogram",
             "Between two tokens of a request as they leave the engine, over lost epochs too.");
  for (const InstanceSnapshot& i : instances) {
    out.buckets("tandem_inter_token_seconds", i.figures.token_gaps, {{"instance", i.name}});
  }
}

}  // namespace tandem::app
