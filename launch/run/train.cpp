#include "launch/run/train.h"

#include "actors/group/sharded.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/text.h"
#include "launch/profile/fields.h"
#include "launch/run/conduct.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/role_table.h"
#include "launch/run/settings.h"
#include "launch/run/under_mpi.h"
#include "transports/inproc/loopback.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {
namespace {

namespace group = actors::group;

// One process. All models take turns on the engine lane: the reference and the rollout each have
// the whole machine, the policy shares it among its ranks, which are threads. The verifier, which
// needs no engine, works beside them.
class Process final : public Cast {
 public:
  explicit Process(const RunConfig& config)
      : session_(config),
        profile_(config, "", true),
        device_(watched(profile_.rank(0), engine::ops::make_cpu_device(
                                              {.threads = static_cast<int>(config.train.threads),
                                               .pin_threads = config.train.pin_threads}))),
        journal_(config.output, cat(config.algorithm, ": ", config.model), config.train.log_every) {
  }

  int run() {
    const Interrupts interrupts(stop_);
    journal_.on_step([this](std::int64_t step) { profile_.at_step(step); });
    text_ = value_or_throw(
        TextModel::load(session_.config().model, session_.config().chat_template, session_.spec()));
    policy_.emplace(spawn<Role::policy>());
    return conduct(session_, *text_, *this, journal_, stop_);
  }

  actors::Node& node() override { return node_; }
  algorithms::PolicyRef policy() override { return *policy_; }
  algorithms::CriticRef critic() override { return spawn<Role::critic>(); }
  algorithms::ReferenceRef reference() override { return spawn<Role::reference>(); }
  std::vector<algorithms::RolloutRef> rollouts() override { return {spawn<Role::rollout>()}; }
  algorithms::RewardRef verifier() override { return spawn<Role::verifier>(); }
  algorithms::RewardRef reward() override { return spawn<Role::reward>(); }
  std::size_t pieces() const override { return 1; }

 private:
  template <Role R>
  RoleRef<R> spawn() {
    constexpr const auto& entry = role_entry<R>();
    const std::string name(entry.name);
    const RunConfig& config = session_.config();
    if constexpr (!RoleEntryOf<R>::has_model) {
      return node_.spawn(name, entry.make(config), {.executor = name});
    } else {
      const auto grid = policy_grid(config);
      if (entry.sharing != Sharing::grid || grid.ranks() == 1)
        return node_.spawn(name, entry.make({config, session_.from(), *device_, nullptr,
                                             &session_.output(), text_}));
      using Ranked = Housed<RoleActor<R>>;
      const auto make = [this, grid, &config](engine::parallel::Mesh mesh) {
        return housed<RoleActor<R>>(
            cpu_of(config, part_of_process(grid.ranks())), std::move(mesh), profile_,
            [&](const House& house) {
              const auto* output = house.mesh->leads() ? &session_.output() : nullptr;
              return role_entry<R>().make(
                  {config, session_.from(), *house.device, house.mesh.get(), output, text_});
            });
      };
      return node_.spawn(name, value_or_throw(group::shard_over_threads<Ranked>(name, grid, make)));
    }
  }

  Session session_;
  RunProfile profile_;
  std::unique_ptr<engine::ops::Device> device_;
  RunJournal journal_;
  actors::Stop stop_;
  std::shared_ptr<TextModel> text_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_, {.on_answered = [this](const auto& ask) {
                       journal_.answered(ask);
                     }}};
  std::optional<algorithms::PolicyRef> policy_;
};

}  // namespace

int train(const RunConfig& config, const Origins&) {
  value_or_throw(check_profile_ranks(config, policy_grid(config).ranks()));
  return transports::mpi::under_mpirun() ? train_under_mpirun(config) : Process(config).run();
}

}  // namespace troupe::launch
