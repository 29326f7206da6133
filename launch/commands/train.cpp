#include "launch/commands/train.h"

#include <chrono>
#include <map>

#include "actors/group/sharded.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "launch/commands/dry_run.h"
#include "launch/recipes/validate_profile.h"
#include "launch/memory/check_memory.h"
#include "launch/recipes/model_spec.h"
#include "launch/run/algorithm_run.h"
#include "launch/run/check_grids.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/settings.h"
#include "launch/run/under_mpi.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {

namespace {

namespace group = actors::group;

// All models take turns on the engine's executor: each has the whole machine, or shares it among
// its ranks, which are threads. With rollout.threads the rollout has an executor and a device of
// its own. The verifier, which needs no engine, runs concurrently.
class InProcess final : public Placement {
 public:
  explicit InProcess(const RunConfig& config)
      : hangs_(std::chrono::seconds(config.train.timeout)),
        session_(config),
        profile_(config, "", true),
        device_(watched(profile_.rank(0),
                        engine::ops::make_cpu_device(cpu_of(config, part_of_trainer(config))))),
        rollout_device_(rollouts_have_threads(config)
                            ? engine::ops::make_cpu_device(cpu_of_rollouts(config))
                            : nullptr),
        run_(session_, profile_) {}

  /// Runs the algorithm to its end or to a signal, and returns the exit code. Throws Failure.
  int run() {
    const Interrupts interrupts(run_.stop());
    text_ = value_or_throw(TextModel::load(session_.config(), session_.spec()));
    addresses(Role::policy);
    return run_.run(*this, *text_);
  }

  actors::Node& node() override { return local_.node(); }
  std::vector<transports::Address> addresses(Role role) override {
    return local_.address(role, session_.config(),
                          [this]<Role R>(const std::string& name) { spawn<R>(name); });
  }

  std::size_t chunks_per_rollout() const override { return chunks_in_process(session_.config()); }
  bool streams_weights() const override {
    const auto ranks = [this](Role role) {
      return grid_of(parallel_of(session_.config(), role, RankKind::threads)).ranks();
    };
    return ranks(Role::rollout) > 1 || ranks(Role::reference) > 1;
  }

 private:
  template <Role R>
  void spawn(const std::string& name) {
    const RunConfig& config =
        configs_.emplace(R, config_for(session_.config(), R, RankKind::threads)).first->second;
    const bool own_threads = R == Role::rollout && rollout_device_ != nullptr;
    const auto placed = own_threads ? actors::Placement{.executor = name} : actors::Placement();
    auto& device = own_threads ? *rollout_device_ : *device_;
    if (grid_of(config.parallel).ranks() > 1)
      node().spawn(name, sharded<R>(name, config, own_threads), placed);
    else
      node().spawn(name,
                   role_entry<R>().make({config, session_.resume_from(), device, nullptr,
                                         &session_.output(), text_}),
                   placed);
  }

  // `own_threads`: on those of rollout.threads, beside the other roles.
  template <Role R>
  auto sharded(const std::string& name, const RunConfig& config, bool own_threads) {
    using OnRank = RoleOnRank<RoleActor<R>>;
    const auto grid = grid_of(config.parallel);
    const auto cpu = own_threads
                         ? cpu_of_rollouts(config, grid.ranks())
                         : cpu_of(config, part_of_process(grid.ranks(), part_of_trainer(config)));
    const auto make = [this, cpu, own_threads, &config](engine::parallel::Mesh mesh) {
      return make_role_on_rank<RoleActor<R>>(
          {cpu, std::move(mesh), own_threads ? nullptr : &profile_},
          [&](const RankResources& rank) {
            const auto* output = rank.mesh->is_root() ? &session_.output() : nullptr;
            return role_entry<R>().make(
                {config, session_.resume_from(), *rank.device, rank.mesh.get(), output, text_});
          });
    };
    return value_or_throw(group::shard_over_threads<OnRank>(
        name, grid, make, thread_options(config.parallel.timeout)));
  }

  const HangGuard hangs_;  // until all actors have ended
  Session session_;
  std::map<Role, RunConfig> configs_;  ///< of each model, with its grid
  RunProfile profile_;
  std::unique_ptr<engine::ops::Device> device_;
  std::unique_ptr<engine::ops::Device> rollout_device_;  ///< null: the rollout shares device_
  AlgorithmRun run_;
  std::shared_ptr<TextModel> text_;
  LocalNode local_{run_.node_options()};
};

}  // namespace

int train(const Sources& sources, bool only_dry_run) {
  handle_interrupts();
  if (transports::mpi::under_mpirun() && (sources.file == "-" || sources.file == "/dev/stdin"))
    throw Failure({Errc::usage,
                   "--config -: mpirun passes its standard input to one rank only; write the "
                   "configuration to a file"});
  Resolved run = value_or_throw(resolve(sources));
  if (auto lower = value_or_throw(limit_max_length(run.config)); !lower.empty())
    run.warnings.push_back(std::move(lower));
  for (const std::string& warning : run.warnings) log_warning(warning);
  value_or_throw(check_profile_ranks(run.config, policy_grid(run.config).ranks()));
  value_or_throw(check_grids(run.config));
  if (const auto warning = value_or_throw(check_memory(
          run.config, value_or_throw(spec_of(run.config, run.config.model)), memory_place()));
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
    return dry_run(run.config, [](const RunConfig& config) { return InProcess(config).run(); });
  }
  return transports::mpi::under_mpirun() ? train_under_mpirun(run.config)
                                         : InProcess(run.config).run();
}

}  // namespace troupe::launch
