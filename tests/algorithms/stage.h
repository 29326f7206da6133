// The test bench of the loops: a controller and fake actors on two nodes, rows of data, and a plan.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "actors/runtime/virtual_scheduler.h"
#include "algorithms/training/plan.h"
#include "engine/data/loader/loader.h"
#include "tests/algorithms/fakes.h"
#include "tests/support/simulated_transport.h"
#include "transports/inproc/loopback.h"

namespace troupe::algorithms {

using engine::data::Loader;
using engine::data::LoaderOptions;
using engine::data::PairExample;
using engine::data::PromptRow;
using engine::data::SftExample;
using engine::data::StepExample;
using engine::data::UnpairedExample;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

inline constexpr LoaderOptions three_a_step{.batch_size = 3, .seed = 5};

inline Loader<PromptRow> prompts(LoaderOptions options = three_a_step) {
  engine::data::Dataset<PromptRow> rows;
  for (int i = 0; i < 8; ++i)
    rows.examples.push_back({{i + 4, 9}, cat("prompt ", i), Json(i), Json()});
  return {std::move(rows), options};
}
/// A controller and its actors, on one node or two, over any scheduler and transport.
struct Stage {
  Stage(actors::Scheduler& scheduler, transports::Transport& transport, int rollouts)
      : home("home", scheduler, transport), away("away", scheduler, transport) {
    for (int i = 0; i < rollouts; ++i) {
      auto there = away.spawn(cat("rollout", i), FakeRollout{}, {.executor = cat("rollout", i)});
      cluster.rollouts.push_back(home.ref(there.address(), FakeRollout::Handled{}));
    }
  }
  actors::Node home, away;
  std::vector<std::string> saved;
  Remembering journal;
  actors::Stop stop;
  Cluster cluster{
      home.spawn("policy", FakePolicy{&saved}),
      home.spawn("reference", FakeReference{}),
      {},
      home.ref(away.spawn("verifier", FakeVerifier{}, {.executor = "verifier"}).address(),
               FakeVerifier::Handled{}),
      journal,
      stop};
};

inline TrainingPlan plan_of(std::int64_t steps, std::int64_t save_every = 0) {
  const auto schedule = value_or_throw(engine::optim::Schedule::create(
      engine::optim::ScheduleKind::constant, {.total_steps = steps}));
  return {.steps = steps, .save_every = save_every, .learning_rate = 0.01, .schedule = schedule};
}

struct OneThread {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage{scheduler, transport, 1};
  void run(Task<void> task) { actors::run(stage.home, std::move(task)); }
};

}  // namespace troupe::algorithms
