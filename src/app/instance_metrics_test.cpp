#include "app/instance_metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

namespace tandem::app {
namespace {

control::InstanceSnapshot instance(const std::string& name) {
  control::InstanceSnapshot made;
  made.name = name;
  made.epoch = 3;
  made.is_healthy = true;
  made.page_tokens = 32;
  made.ranks = {{.rank = 0,
                 .state = control::RankState::kReady,
                 .memory = {.weight_bytes = 100, .cache_bytes = 200, .resident_bytes = 300},
                 .starts = 2},
                {.rank = 1, .starts = 1}};
  control::InstanceFigures& figures = made.figures;
  figures.engine = {
      .waiting = 1,
      .paused = 2,
      .running = 3,
      .pages = {.free = 4, .cached = 5, .referenced = 6},
      .window_pages = {.free = 13, .cached = 14, .referenced = 15},
      .totals = {.steps = 7, .rows = 8, .answer_tokens = 9, .pauses = 10, .window_pages_left = 16}};
  Histogram steps{token_times()};
  steps.add(0.004, 7);
  figures.engine.totals.step_counts = steps.counts();
  figures.engine.totals.step_time = std::chrono::milliseconds(28);
  figures.deaths[static_cast<size_t>(control::DeathCause::kSilence)] = 11;
  figures.lost_epochs[static_cast<size_t>(control::EpochEnd::kStall)] = 12;
  figures.token_gaps.add(0.02);
  return made;
}

std::vector<std::string> lines(const std::vector<control::InstanceSnapshot>& instances) {
  protocol::MetricsText text;
  write_metrics(text, instances);
  std::istringstream in(text.text());
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST_CASE("instance metrics: each figure is there under its name, with its labels") {
  const auto all = lines({instance("a")});
  for (const char* line :
       {"tandem_instance_ready{instance=\"a\"} 1", "tandem_instance_epoch{instance=\"a\"} 3",
        "tandem_engine_requests{instance=\"a\",state=\"paused\"} 2",
        "tandem_kv_pages{instance=\"a\",state=\"used\"} 6",
        "tandem_window_pages{instance=\"a\",state=\"used\"} 15",
        "tandem_window_pages{instance=\"a\",state=\"cached\"} 14",
        "tandem_window_pages_left_total{instance=\"a\"} 16",
        "tandem_kv_page_tokens{instance=\"a\"} 32", "tandem_engine_steps_total{instance=\"a\"} 7",
        "tandem_engine_generated_tokens_total{instance=\"a\"} 9",
        "tandem_engine_pauses_total{instance=\"a\"} 10",
        "tandem_rank_deaths_total{instance=\"a\",cause=\"silence\"} 11",
        "tandem_lost_epochs_total{instance=\"a\",cause=\"stall\"} 12",
        "tandem_rank_up{instance=\"a\",rank=\"1\"} 0",
        "tandem_rank_memory_bytes{instance=\"a\",rank=\"0\",kind=\"resident\"} 300",
        "tandem_engine_step_seconds_bucket{instance=\"a\",le=\"0.0025\"} 0",
        "tandem_engine_step_seconds_bucket{instance=\"a\",le=\"0.005\"} 7",
        "tandem_engine_step_seconds_sum{instance=\"a\"} 0.028",
        "tandem_inter_token_seconds_bucket{instance=\"a\",le=\"+Inf\"} 1"}) {
    CAPTURE(line);
    CHECK(std::count(all.begin(), all.end(), line) == 1);
  }
}

TEST_CASE("instance metrics: pools that a model does not have are not counted as empty") {
  control::InstanceSnapshot recurrent = instance("b");
  recurrent.figures.engine.window_pages = {};
  recurrent.figures.engine.states = {.free = 1, .cached = 2, .referenced = 3};
  const auto all = lines({instance("a"), recurrent});
  const auto count = [&](const std::string& part) {
    return std::ranges::count_if(all,
                                 [&](const std::string& line) { return line.find(part) == 0; });
  };
  CHECK(count("tandem_state_slots{instance=\"a\"") == 0);
  CHECK(count("tandem_state_slots{instance=\"b\",state=\"cached\"} 2") == 1);
  CHECK(count("tandem_window_pages{instance=\"a\"") == 3);
  CHECK(count("tandem_window_pages{instance=\"b\"") == 0);
}

TEST_CASE("instance metrics: samples of a family stand together under one HELP and one TYPE") {
  std::set<std::string> families;
  std::string family;
  for (const std::string& line : lines({instance("a"), instance("b")})) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string mark, kind, name;
    words >> mark >> kind >> name;
    if (mark == "#" && kind == "HELP") {
      CHECK(families.insert(name).second);
      family = name;
    } else if (mark == "#") {
      CHECK(name == family);
    } else {
      CHECK(mark.find(family) == 0);
    }
  }
  CHECK(families.size() > 15);
}

}  // namespace
}  // namespace tandem::app
