#include "tests/simulator/simulation.h"

#include <exception>
#include <memory>

#include "actors/runtime/run.h"
#include "actors/runtime/virtual_scheduler.h"
#include "engine/base/text/text.h"
#include "tests/simulator/actors.h"
#include "tests/simulator/resending_transport.h"

namespace troupe::simulator {
namespace {

constexpr std::chrono::seconds reply_deadline{60}, run_deadline{600};

std::string rollout_name(std::uint64_t index) {
  return cat("rollout-", index);
}

/// The processes of one incarnation.
class Processes {
 public:
  Processes(const Scenario& scenario, std::uint64_t incarnation, Ledger& ledger, Store& store)
      : scenario_(scenario),
        ledger_(ledger),
        store_(store),
        seed_(scenario.seed * 8 + incarnation),
        scheduler_(seed_),
        network_(seed_, scenario.faults, later()),
        transport_(network_, later()),
        home_("home", scheduler_, transport_),
        verifier_("verifier", scheduler_, transport_),
        journal_(ledger) {
    for (std::uint64_t i = 0; i < scenario.rollouts; ++i)
      rollouts_.push_back(std::make_unique<actors::Node>(rollout_name(i), scheduler_, transport_));
  }

  /// Trains from the newest checkpoint until the end, or until the disruption.
  void run(const Disruption& disruption) {
    const std::int64_t batches =
        disruption.end == End::shorter ? disruption.batches : scenario_.batches;
    algorithms::TrainingPlan plan{
        .steps = batches * scenario_.minibatches,
        .save_every = scenario_.save_every,
        .learning_rate = 0.01,
        .schedule = value_or_throw(engine::optim::Schedule::create(
            engine::optim::ScheduleKind::constant, {.total_steps = 1000}))};
    PromptLoader data = scenario_.data();
    SimulatedPolicy policy{&ledger_, &store_, {home_, seed_}};
    restore(plan, data, policy);
    if (plan.done >= plan.steps) return;
    algorithms::Cluster cluster = cluster_of(std::move(policy));
    prepare(disruption);
    train(cluster, data, plan, disruption);
  }

 private:
  test::SimulatedTransport::Later later() {
    return [this](auto delay, auto job) { scheduler_.later(delay, std::move(job)); };
  }

  void restore(algorithms::TrainingPlan& plan, PromptLoader& data, SimulatedPolicy& policy) {
    if (!store_.checkpoints().empty()) {
      const auto& [step, saved] = *store_.checkpoints().rbegin();
      policy.updates = saved.updates;
      policy.weight = saved.weight;
      plan.done = step;
      plan.batches_done = saved.state.batches;
      plan.versions = saved.state.versions;
      value_or_throw(data.restore(saved.state.data));
    }
    ledger_.begin(plan.batches_done);
  }

  algorithms::Cluster cluster_of(SimulatedPolicy policy) {
    algorithms::Cluster cluster{
        home_.spawn("policy", std::move(policy)),
        {},
        {},
        home_.ref(verifier_
                      .spawn("verifier", SimulatedVerifier{&ledger_, {verifier_, seed_}},
                             {.max_concurrency = 4})
                      .address(),
                  SimulatedVerifier::Handled{}),
        journal_,
        stop_,
        scenario_.chunks,
        reply_deadline};
    for (std::size_t i = 0; i < rollouts_.size(); ++i) {
      SimulatedRollout rollout{
          &ledger_, scenario_.async.change.partial, {*rollouts_[i], seed_ + 1000 * (i + 1)}};
      const std::size_t at_once = scenario_.async.free() ? 8 : 1;
      const auto there =
          rollouts_[i]->spawn("rollout", std::move(rollout), {.max_concurrency = at_once});
      cluster.rollouts.push_back(home_.ref(there.address(), SimulatedRollout::Handled{}));
    }
    cluster.versions = &store_;
    return cluster;
  }

  void end_all() {
    ledger_.crash();
    home_.cancel_asks();
  }

  void prepare(const Disruption& disruption) {
    scheduler_.later(run_deadline, [this] {
      ledger_.violated(cat("the run has not ended after ", run_deadline.count(), " s"));
      end_all();
    });
    if (disruption.end == End::none || disruption.end == End::shorter) return;
    scheduler_.later(disruption.at, [this, disruption] {
      if (disruption.end == End::signal) stop_.request();
      if (disruption.end == End::crash) end_all();
      if (disruption.end == End::node)
        network_.kill(disruption.node == 0 ? "verifier" : rollout_name(disruption.node - 1));
    });
  }

  void train(algorithms::Cluster& cluster, PromptLoader& data, const algorithms::TrainingPlan& plan,
             const Disruption& disruption) {
    const std::int64_t batches = plan.steps / scenario_.minibatches;
    try {
      actors::run(home_,
                  algorithms::grpo(cluster, data, plan, scenario_.config(), scenario_.held_out()));
      if (disruption.end != End::signal) ledger_.finish(batches);
    } catch (const Failure& failure) {
      const bool expected = disruption.end == End::node && failure.error().code == Errc::timeout;
      if (!expected) ledger_.violated(cat("the run failed: ", failure.what()));
    } catch (const std::exception& error) {
      ledger_.violated(error.what());
    }
    ledger_.crash();
  }

  const Scenario& scenario_;
  Ledger& ledger_;
  Store& store_;
  std::uint64_t seed_;
  actors::VirtualScheduler scheduler_;
  test::SimulatedTransport network_;
  ResendingTransport transport_;
  actors::Node home_, verifier_;
  std::vector<std::unique_ptr<actors::Node>> rollouts_;
  LedgerJournal journal_;
  actors::Stop stop_;
};

}  // namespace

std::string simulate(const Scenario& scenario) {
  const ExpectedBatches expected(scenario);
  Ledger ledger(scenario, expected);
  Store store(ledger);
  std::vector<Disruption> incarnations = scenario.disruptions;
  incarnations.emplace_back();
  for (std::size_t i = 0; i < incarnations.size() && ledger.violations().empty(); ++i)
    Processes(scenario, i, ledger, store).run(incarnations[i]);
  if (ledger.violations().empty()) return "";
  return cat(ledger.violations().front(), "\n  ", scenario.text());
}

}  // namespace troupe::simulator
