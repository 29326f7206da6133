#include "launch/run/in_process.h"

#include <chrono>
#include <map>

#include "actors/group/sharded.h"
#include "engine/ops/devices/make_device.h"
#include "launch/recipes/recipes.h"
#include "launch/run/algorithm_run.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/settings.h"

namespace troupe::launch::run {

namespace {

namespace group = actors::group;

// All models take turns on the engine's executor: each has the whole machine, or shares it among
// its ranks, which are threads. With rollout.threads the rollout has an executor and a device of
// its own. The verifier, which needs no engine, runs concurrently.
class InProcess final : public Placement {
 public:
  explicit InProcess(const config::RunConfig& config)
      : hangs_(std::chrono::seconds(config.train.timeout)),
        session_(config),
        profile_(config, "", true),
        device_(profile::watched(
            profile_.rank(0), engine::ops::make_device(cpu_of(config, part_of_trainer(config))))),
        rollout_device_(rollouts_have_threads(config)
                            ? engine::ops::make_device(cpu_of_rollouts(config))
                            : nullptr),
        run_(session_, profile_) {}

  /// Runs the algorithm to its end or to a signal, and returns the exit code. Throws Failure.
  int run() {
    const Interrupts interrupts(run_.stop());
    text_ = value_or_throw(TextModel::load(session_.config(), session_.spec()));
    addresses(recipes::Role::policy);
    return run_.run(*this, *text_);
  }

  actors::Node& node() override { return local_.node(); }
  std::vector<transports::Address> addresses(recipes::Role role) override {
    return local_.address(role, session_.config(),
                          [this]<recipes::Role R>(const std::string& name) { spawn<R>(name); });
  }

  std::size_t chunks_per_rollout() const override { return chunks_in_process(session_.config()); }
  bool streams_weights() const override {
    const auto ranks = [this](recipes::Role role) {
      return recipes::parallel_of(session_.config(), role, recipes::RankKind::threads).ranks();
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
    const auto placed =
        own_threads ? actors::ActorOptions{.executor = name} : actors::ActorOptions();
    auto& device = own_threads ? *rollout_device_ : *device_;
    if (config.parallel.ranks() > 1)
      node().spawn(name, sharded<R>(name, config, own_threads), placed);
    else
      node().spawn(name,
                   role_entry<R>().make({config, session_.resume_from(), device, nullptr,
                                         &session_.output(), text_}),
                   placed);
  }

  // `own_threads`: on those of rollout.threads, beside the other roles.
  template <recipes::Role R>
  auto sharded(const std::string& name, const config::RunConfig& config, bool own_threads) {
    using OnRank = RoleOnRank<RoleActor<R>>;
    const engine::parallel::Grid grid = config.parallel;
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
  std::map<recipes::Role, config::RunConfig> configs_;  ///< of each model, with its grid
  profile::RunProfile profile_;
  std::unique_ptr<engine::ops::Device> device_;
  std::unique_ptr<engine::ops::Device> rollout_device_;  ///< null: the rollout shares device_
  AlgorithmRun run_;
  std::shared_ptr<TextModel> text_;
  LocalNode local_{run_.node_options()};
};

}  // namespace

int train_in_process(const config::RunConfig& config) {
  return InProcess(config).run();
}

}  // namespace troupe::launch::run
