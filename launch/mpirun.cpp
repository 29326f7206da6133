#include "launch/mpirun.h"

#include <csignal>

#include "actors/group/sharded.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/text.h"
#include "engine/parallel/reduce.h"
#include "launch/interrupt.h"
#include "launch/recipes/recipes.h"
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
using engine::parallel::Grid;
using engine::parallel::Mesh;

// What every rank does alike, in the same order: hear where the run goes on from, make its part of each actor.
class Rank {
 public:
  explicit Rank(const RunConfig& config)
      : config_(config), world_(value_or_throw(transports::mpi::mpi_world())), line_(std::make_shared<group::Line>(split())) {}

  bool leads() const { return world_->rank() == 0; }
  const std::shared_ptr<group::Line>& line() const { return line_; }

  /// `session` is there on rank 0. What it refuses, every rank throws.
  void begin(std::optional<Session>& session) {
    line_->together("taking the output directory", [&] {
      if (leads()) session.emplace(config_);
    });
    from_ = engine::parallel::gather_strings(*world_, session ? session->from() : "", "the checkpoint to go on from").front();
    const auto* output = session ? &session->output() : nullptr;
    const Grid replicas{.dp = world_->size()};
    policy =
        make<roles::Trainer>("making the policy", policy_grid(config_), [&](const RoleParts& parts) { return make_policy(parts, output); });
    const RolesNeeded roles = roles_of(config_);
    if (roles.critic.needed) critic = make<roles::Trainer>("making the critic", policy_grid(config_), make_critic);
    if (roles.reward.needed) reward = make<roles::RewardModels>("making the reward models", replicas, make_reward);
    if (roles.reference.needed) reference = make<roles::Scorer>("making the reference", replicas, make_reference);
    if (!roles.rollout.needed) return;
    rollout = make<roles::Rollout>("making the rollout", replicas, [&](const RoleParts& parts) { return make_rollout(parts, text()); });
  }

  std::shared_ptr<TextModel> text() {
    if (!text_) text_ = value_or_throw(TextModel::load(config_.model, config_.chat_template, spec_of_run(config_, from_)));
    return text_;
  }

  void follow() {
    group::Followed followed;
    followed.add("policy", *policy);
    if (critic) followed.add("critic", *critic);
    if (reward) followed.add("reward", *reward);
    if (reference) followed.add("reference", *reference);
    if (rollout) followed.add("rollout", *rollout);
    group::follow(*line_, followed);
  }

  std::unique_ptr<Housed<roles::Trainer>> policy, critic;
  std::unique_ptr<Housed<roles::RewardModels>> reward;
  std::unique_ptr<Housed<roles::Scorer>> reference;
  std::unique_ptr<Housed<roles::Rollout>> rollout;

 private:
  std::unique_ptr<engine::parallel::Communicator> split() { return world_->split(0, world_->rank()); }

  template <class Role, class Make>
  std::unique_ptr<Housed<Role>> make(const char* what, Grid grid, const Make& make_role) {
    std::unique_ptr<Housed<Role>> made;
    line_->together(what, [&] {
      auto mesh = value_or_throw(Mesh::create(split(), grid));
      const int threads = threads_a_rank(config_.train.threads, world_->size());
      made = housed<Role>(threads, std::move(mesh), [&](const House& house) {
        return make_role(RoleParts{config_, from_, *house.device, house.mesh.get()});
      });
    });
    return made;
  }

  const RunConfig& config_;
  std::unique_ptr<engine::parallel::Communicator> world_;
  std::shared_ptr<group::Line> line_;
  std::string from_;
  std::shared_ptr<TextModel> text_;
};

// Rank 0.
class Leader final : public Cast {
  template <class Role>
  auto spawn(const std::string& name, std::unique_ptr<Role> role) {
    return node_.spawn(name, std::make_unique<group::Sharded<Role>>(name, rank_.line(), std::move(role)));
  }

 public:
  Leader(Rank& rank, const Session& session)
      : rank_(rank),
        session_(session),
        journal_(session.config().output, cat(session.config().algorithm, ": ", session.config().model), session.config().train.log_every) {
  }

  int run() {
    catch_interrupts(stop_);
    policy_.emplace(spawn("policy", std::move(rank_.policy)));
    return conduct(session_, *rank_.text(), *this, journal_, stop_);
  }

  actors::Node& node() override { return node_; }
  algorithms::PolicyRef policy() override { return *policy_; }
  algorithms::CriticRef critic() override { return spawn("critic", std::move(rank_.critic)); }
  algorithms::ReferenceRef reference() override { return spawn("reference", std::move(rank_.reference)); }
  std::vector<algorithms::RolloutRef> rollouts() override { return {spawn("rollout", std::move(rank_.rollout))}; }
  algorithms::VerifierRef verifier() override { return node_.spawn("verifier", make_verifier(session_.config()), {.lane = "verifier"}); }
  algorithms::RewardRef reward() override { return spawn("reward", std::move(rank_.reward)); }
  std::size_t pieces() const override { return 1; }

 private:
  Rank& rank_;
  const Session& session_;
  RunJournal journal_;
  actors::Stop stop_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_, {.on_answered = [this](const auto& ask) { journal_.answered(ask); }}};
  std::optional<algorithms::PolicyRef> policy_;
};

}  // namespace

int train_under_mpirun(const RunConfig& config) {
  std::optional<Error> failed;
  int code = 0;
  {
    Rank rank(config);
    std::optional<Session> session;
    if (!rank.leads()) {
      // mpirun passes a person's wish to stop to every rank; the leader alone decides when.
      std::signal(SIGINT, SIG_IGN);
      std::signal(SIGTERM, SIG_IGN);
    }
    // An exception that left while the group stands would end it as a rank's death does. A failure is told by rank 0, and all leave.
    try {
      rank.begin(session);
      if (rank.leads())
        code = Leader(rank, *session).run();
      else
        rank.follow();
    } catch (const Failure& failure) { failed = failure.error(); }
  }
  if (failed) throw Failure(std::move(*failed));
  return code;
}

}  // namespace troupe::launch
