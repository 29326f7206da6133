#include "tests/simulator/scenario.h"

#include <algorithm>
#include <array>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::simulator {
namespace {

using algorithms::AsyncMode;
using engine::data::PromptRow;

constexpr int row_count = 7;  // the prompts are used several times

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t below(std::uint64_t n) { return uniform_below(n, seed_, 0, draws_++); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t seed_, draws_ = 0;
};

test::Faults draw_faults(Draws& draw) {
  test::Faults faults;
  faults.max_delay = Milliseconds(std::array{0, 5, 40, 200}[draw.below(4)]);
  if (draw.one_in(2)) faults.loss = 0.15;
  if (draw.one_in(2)) faults.repeat = 0.2;
  return faults;
}

std::vector<Disruption> draw_disruptions(Draws& draw, const Scenario& scenario) {
  std::vector<Disruption> out(draw.one_in(2) ? draw.below(3) : 0);
  for (Disruption& each : out) {
    each.end = static_cast<End>(1 + draw.below(4));
    each.at = Milliseconds(draw.below(4000));
    each.node = draw.below(scenario.rollouts + 1);
    each.batches =
        1 + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(scenario.batches)));
  }
  return out;
}

bool rewards_differ(const std::vector<std::uint64_t>& group) {
  return std::ranges::any_of(
      group, [&](const std::uint64_t id) { return reward_of(id) != reward_of(group.front()); });
}

}  // namespace

Scenario::Scenario(std::uint64_t drawn) : seed(drawn) {
  Draws draw(seed);
  prompts = 1 + static_cast<std::int64_t>(draw.below(3));
  group = 2 + static_cast<int>(draw.below(2));
  minibatches = draw.one_in(3) ? 2 : 1;
  batches = 3 + static_cast<std::int64_t>(draw.below(4));
  save_every = static_cast<std::int64_t>(draw.below(4));
  eval_every = draw.one_in(4) ? 1 + static_cast<std::int64_t>(draw.below(3)) : 0;
  rollouts = 1 + draw.below(3);
  chunks = 1 + draw.below(3);
  dynamic = draw.one_in(4);
  async.mode = draw.one_in(2) ? AsyncMode::pinned : AsyncMode::free;
  async.eta = std::array{0, 1, 1, 2, 4}[draw.below(5)];
  async.in_flight = draw.one_in(2) ? 0 : samples() * static_cast<std::int64_t>(1 + draw.below(4));
  if (draw.one_in(2)) async.change.partial = engine::generate::PartialSamples::restart;
  faults = draw_faults(draw);
  disruptions = draw_disruptions(draw, *this);
}

std::int64_t Scenario::batches_in_flight() const {
  return async.in_flight == 0 ? 2 : async.in_flight / samples();
}

std::string Scenario::text() const {
  std::string out = cat(
      "seed ", seed, ": async.mode ", name_of(async.mode), ", eta ", async.eta, ", in_flight ",
      async.in_flight, ", partial ", name_of(async.change.partial), ", ", batches, " batches of ",
      prompts * minibatches, " x ", group, " in ", minibatches, " updates, ", rollouts,
      " rollouts, ", chunks, " chunks, dynamic ", dynamic ? 1 : 0, ", save_every ", save_every,
      ", eval_every ", eval_every, ", loss ", faults.loss, ", repeat ", faults.repeat);
  for (const Disruption& each : disruptions) {
    const auto kind = static_cast<std::size_t>(each.end);
    out += cat(", ", std::array{"", "crash", "node", "signal", "shorter"}[kind], " at ",
               each.at.count(), " ms");
  }
  return out;
}

algorithms::GrpoConfig Scenario::config() const {
  algorithms::GrpoConfig config;
  config.group = group;
  config.minibatches = minibatches;
  config.loss.entropy_coef = 0.01;  // so that samples without an advantage are trained on
  config.sampling.max_new_tokens = 8;
  config.async = async;
  config.dynamic.on = dynamic;
  config.dynamic.max_refills = 0;
  config.logged_completions = 1 << 20;
  return config;
}

PromptLoader Scenario::data() const {
  engine::data::Dataset<PromptRow> data;
  for (int i = 0; i < row_count; ++i)
    data.examples.push_back({{i + 4, 9}, cat("prompt ", i), Json(i), Json()});
  return {std::move(data), {.batch_size = prompts * minibatches, .seed = seed}};
}

algorithms::HeldOutPrompts Scenario::held_out() const {
  algorithms::HeldOutPrompts prompts;
  if (eval_every == 0) return prompts;
  for (int i = 0; i < 2; ++i)
    prompts.rows.push_back({{i + 4, 9}, cat("held out ", i), Json(), Json()});
  prompts.every = eval_every;
  prompts.samples_at_once = 2;
  return prompts;
}

double reward_of(std::uint64_t sample_id) {
  return static_cast<double>(uniform_below(2, 17, sample_id, 0));
}

bool held_out_sample(std::uint64_t sample_id) {
  return sample_id >> 61 != 0;
}

ExpectedBatches::ExpectedBatches(const Scenario& scenario) {
  PromptLoader loader = scenario.data();
  const auto group = static_cast<std::uint64_t>(scenario.group);
  for (std::int64_t batch = 0; batch < scenario.batches; ++batch) {
    std::vector<std::uint64_t> kept;
    while (std::ssize(kept) < scenario.samples()) {
      const auto rows = loader.next();
      for (std::size_t i = 0; i < rows->ids.size(); ++i) {
        std::vector<std::uint64_t> samples;
        for (std::uint64_t k = 0; k < group; ++k) samples.push_back(rows->ids[i] * group + k);
        for (const std::uint64_t id : samples) sampled_for[id] = batch;
        for (const std::uint64_t id : samples) prompts[id] = rows->examples[i]->ids.front();
        if (std::ssize(kept) == scenario.samples()) continue;
        if (scenario.dynamic && !rewards_differ(samples)) continue;
        kept.insert(kept.end(), samples.begin(), samples.end());
      }
    }
    ids.push_back(std::move(kept));
    data.push_back(loader.state().dump());
  }
}

}  // namespace troupe::simulator
