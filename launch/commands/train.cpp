#include "launch/commands/train.h"

#include <chrono>
#include <map>

#include "actors/group/sharded.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "launch/commands/dry_run.h"
#include "launch/memory/check_memory.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/validate_profile.h"
#include "launch/run/algorithm_run.h"
#include "launch/run/check_grids.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/settings.h"
#include "launch/run/under_mpi.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

namespace {

namespace group = actors::group;

// All models take turns on the engine's executor: each has the whole machine, or shares it among
// its ranks, which are threads. With rollout.threads the rollout has an executor and a device of
// its own. The verifier, which needs no engine, runs concurrently.
class InProcess final : public run::Placement {
 public:
  explicit InProcess(const config::RunConfig& config)
      : hangs_(std::chrono::seconds(config.train.timeout)),
        session_(config),
        profile_(config, "", true),
        device_(profile::watched(profile_.rank(0), engine::ops::make_cpu_device(run::cpu_of(
                                                       config, run::part_of_trainer(config))))),
        rollout_device_(run::rollouts_have_threads(config)
                            ? engine::ops::make_cpu_device(run::cpu_of_rollouts(config))
                            : nullptr),
        run_(session_, profile_) {}

  /// Runs the algorithm to its end or to a signal, and returns the exit code. Throws Failure.
  int run() {
    const run::Interrupts interrupts(run_.stop());
    text_ = value_or_throw(run::TextModel::load(session_.config(), session_.spec()));
    addresses(recipes::Role::policy);
    return run_.run(*this, *text_);
  }

  actors::Node& node() override { return local_.node(); }
  std::vector<transports::Address> addresses(recipes::Role role) override {
    return local_.address(role, session_.config(),
                          [this]<recipes::Role R>(const std::string& name) { spawn<R>(name); });
  }

  std::size_t chunks_per_rollout() const override {
    return run::chunks_in_process(session_.config());
  }
  bool streams_weights() const override {
    const auto ranks = [this](recipes::Role role) {
      return recipes::grid_of(
                 recipes::parallel_of(session_.config(), role, recipes::RankKind::threads))
          .ranks();
    };
    return ranks(recipes::Role::rollout) > 1 || ranks(recipes::Role::reference) > 1;
  }

 private:
  template <recipes::Role R>
  void spawn(const std::string& name) {
    const config::RunConfig& config =
        configs_.emplace(R, recipes::config_for(session_.config(), R, recipes::RankKind::threads))
            .first->second;
    const bool own_threads = R == recipes::Role::rollout && rollout_device_ != nullptr;
    const auto placed = own_threads ? actors::Placement{.executor = name} : actors::Placement();
    auto& device = own_threads ? *rollout_device_ : *device_;
    if (recipes::grid_of(config.parallel).ranks() > 1)
      node().spawn(name, sharded<R>(name, config, own_threads), placed);
    else
      node().spawn(name,
                   run::role_entry<R>().make({config, session_.resume_from(), device, nullptr,
                                              &session_.output(), text_}),
                   placed);
  }

  // `own_threads`: on those of rollout.threads, beside the other roles.
  template <recipes::Role R>
  auto sharded(const std::string& name, const config::RunConfig& config, bool own_threads) {
    using OnRank = run::RoleOnRank<run::RoleActor<R>>;
    const auto grid = recipes::grid_of(config.parallel);
    const auto cpu =
        own_threads
            ? run::cpu_of_rollouts(config, grid.ranks())
            : run::cpu_of(config, run::part_of_process(grid.ranks(), run::part_of_trainer(config)));
    const auto make = [this, cpu, own_threads, &config](engine::parallel::Mesh mesh) {
      return run::make_role_on_rank<run::RoleActor<R>>(
          {cpu, std::move(mesh), own_threads ? nullptr : &profile_},
          [&](const run::RankResources& rank) {
            const auto* output = rank.mesh->is_root() ? &session_.output() : nullptr;
            return run::role_entry<R>().make(
                {config, session_.resume_from(), *rank.device, rank.mesh.get(), output, text_});
          });
    };
    return value_or_throw(group::shard_over_threads<OnRank>(
        name, grid, make, run::thread_options(config.parallel.timeout)));
  }

  const run::HangGuard hangs_;  // until all actors have ended
  run::Session session_;
  std::map<recipes::Role, config::RunConfig> configs_;  ///< of each model, with its grid
  profile::RunProfile profile_;
  std::unique_ptr<engine::ops::Device> device_;
  std::unique_ptr<engine::ops::Device> rollout_device_;  ///< null: the rollout shares device_
  run::AlgorithmRun run_;
  std::shared_ptr<run::TextModel> text_;
  run::LocalNode local_{run_.node_options()};
};

}  // namespace

int train(const recipes::Sources& sources, bool only_dry_run) {
  run::handle_interrupts();
  if (transports::mpi::under_mpirun() && (sources.file == "-" || sources.file == "/dev/stdin"))
    throw Failure({Errc::usage,
                   "--config -: mpirun passes its standard input to one rank only; write the "
                   "configuration to a file"});
  recipes::Resolved run = value_or_throw(recipes::resolve(sources));
  if (auto lower = value_or_throw(run::limit_max_length(run.config)); !lower.empty())
    run.warnings.push_back(std::move(lower));
  for (const std::string& warning : run.warnings) log_warning(warning);
  value_or_throw(
      recipes::check_profile_ranks(run.config, recipes::policy_grid(run.config).ranks()));
  value_or_throw(run::check_grids(run.config));
  if (const auto warning = value_or_throw(memory::check_memory(
          run.config, value_or_throw(recipes::spec_of(run.config, run.config.model)),
          memory::memory_place()));
      !warning.empty())
    log_warning(warning);
  if (run.config.async.on() && run.config.rollout.threads == 0)
    log_warning(
        "async.mode: sampling and training take turns, because the rollouts share the "
        "trainer's threads; set rollout.threads, or start groups of processes (troupe launch)");
  if (only_dry_run) {
    if (transports::mpi::under_mpirun())
      throw Failure(
          {Errc::usage,
           "--dry-run does not run under mpirun; start it in one process, where the ranks "
           "of parallel.tp and parallel.dp are threads"});
    return dry_run(run.config,
                   [](const config::RunConfig& config) { return InProcess(config).run(); });
  }
  return transports::mpi::under_mpirun() ? run::train_under_mpirun(run.config)
                                         : InProcess(run.config).run();
}

}  // namespace troupe::launch::commands
