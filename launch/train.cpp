#include "launch/train.h"

#include "actors/group/sharded.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/text.h"
#include "launch/interrupt.h"
#include "launch/mpirun.h"
#include "launch/run/conduct.h"
#include "launch/run/housed.h"
#include "launch/run/reward_role.h"
#include "launch/run/roles.h"
#include "launch/run/settings.h"
#include "transports/inproc/loopback.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {
namespace {

namespace group = actors::group;
namespace roles = actors::roles;

// One process. All models take turns on the engine lane: the reference and the rollout each have the whole machine, the policy shares it
// among its ranks, which are threads. The verifier, which needs no engine, works beside them.
class Process final : public Cast {
 public:
  explicit Process(const RunConfig& config)
      : session_(config),
        device_(engine::ops::make_cpu_device({.threads = static_cast<int>(config.train.threads)})),
        journal_(config.output, cat(config.algorithm, ": ", config.model), config.train.log_every) {}

  int run() {
    catch_interrupts(stop_);
    policy_.emplace(spawn_policy());
    text_ = value_or_throw(TextModel::load(session_.config().model, session_.config().chat_template, session_.spec()));
    return conduct(session_, *text_, *this, journal_, stop_);
  }

  actors::Node& node() override { return node_; }
  algorithms::PolicyRef policy() override { return *policy_; }
  algorithms::CriticRef critic() override { return spawn_critic(); }
  algorithms::ReferenceRef reference() override { return node_.spawn("reference", make_reference(parts_)); }
  std::vector<algorithms::RolloutRef> rollouts() override { return {node_.spawn("rollout", make_rollout(parts_, text_))}; }
  algorithms::VerifierRef verifier() override { return node_.spawn("verifier", make_verifier(session_.config()), {.lane = "verifier"}); }
  algorithms::RewardRef reward() override { return node_.spawn("reward", make_reward(parts_)); }
  std::size_t pieces() const override { return 1; }

 private:
  algorithms::PolicyRef spawn_policy() {
    const auto grid = policy_grid(session_.config());
    if (grid.ranks() == 1) return node_.spawn("policy", make_policy(parts_, &session_.output()));
    const auto make = [this, grid](engine::parallel::Mesh mesh) {
      return housed<roles::Trainer>(threads_a_rank(session_.config().train.threads, grid.ranks()), std::move(mesh),
                                    [&](const House& house) {
                                      return make_policy({session_.config(), session_.from(), *house.device, house.mesh.get()},
                                                         house.mesh->leads() ? &session_.output() : nullptr);
                                    });
    };
    return node_.spawn("policy", value_or_throw(group::shard_over_threads<Housed<roles::Trainer>>("policy", grid, make)));
  }

  algorithms::CriticRef spawn_critic() {
    const auto grid = policy_grid(session_.config());
    if (grid.ranks() == 1) return node_.spawn("critic", make_critic(parts_));
    const auto make = [this, grid](engine::parallel::Mesh mesh) {
      return housed<roles::Trainer>(threads_a_rank(session_.config().train.threads, grid.ranks()), std::move(mesh),
                                    [&](const House& house) {
                                      return make_critic({session_.config(), session_.from(), *house.device, house.mesh.get()});
                                    });
    };
    return node_.spawn("critic", value_or_throw(group::shard_over_threads<Housed<roles::Trainer>>("critic", grid, make)));
  }

  Session session_;
  std::unique_ptr<engine::ops::Device> device_;
  const RoleParts parts_{session_.config(), session_.from(), *device_};
  RunJournal journal_;
  actors::Stop stop_;
  std::shared_ptr<TextModel> text_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_, {.on_answered = [this](const auto& ask) { journal_.answered(ask); }}};
  std::optional<algorithms::PolicyRef> policy_;
};

}  // namespace

int train(const RunConfig& config, const Origins&) {
  return transports::mpi::under_mpirun() ? train_under_mpirun(config) : Process(config).run();
}

}  // namespace troupe::launch
