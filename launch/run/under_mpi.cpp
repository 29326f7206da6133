#include "launch/run/under_mpi.h"

#include <csignal>

#include "actors/group/sharded.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/text.h"
#include "engine/parallel/all_reduce.h"
#include "launch/recipes/recipes.h"
#include "launch/run/conduct.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/role_table.h"
#include "launch/run/settings.h"
#include "transports/inproc/loopback.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {
namespace {

namespace group = actors::group;
using engine::parallel::Grid;
using engine::parallel::Mesh;

// What every rank does alike, in the same order: hear where the run goes on from, make its part of
// each actor.
class Rank {
 public:
  explicit Rank(const RunConfig& config)
      : config_(config),
        world_(value_or_throw(transports::mpi::mpi_world())),
        channel_(std::make_shared<group::GroupChannel>(split())) {}

  bool leads() const { return world_->rank() == 0; }
  const std::shared_ptr<group::GroupChannel>& channel() const { return channel_; }

  /// `session` is there on rank 0. What it refuses, every rank throws.
  void begin(std::optional<Session>& session) {
    channel_->run_on_all_ranks("taking the output directory", [&] {
      if (leads()) session.emplace(config_);
    });
    from_ = engine::parallel::gather_strings(*world_, session ? session->from() : "",
                                             "the checkpoint to go on from")
                .front();
    channel_->run_on_all_ranks("beginning the profile", [&] {
      if (leads()) profile_.emplace(config_, "", true);
    });
    channel_->run_on_all_ranks("joining the profile", [&] {
      if (!leads()) profile_.emplace(config_, "", false);
    });
    output_ = session ? &session->output() : nullptr;
    const RolesNeeded needed = roles_of(config_);
    for_each_role([&]<Role R>() {
      if constexpr (RoleEntryOf<R>::has_model)
        if (needed.of(role_entry<R>().name).needed) make<R>();
    });
  }

  std::shared_ptr<TextModel> text() {
    if (!text_)
      text_ = value_or_throw(
          TextModel::load(config_.model, config_.chat_template, spec_of_run(config_, from_)));
    return text_;
  }

  void follow() {
    group::HandlerTable handlers;
    for_each_role([&]<Role R>() {
      if (made<R>()) handlers.add(std::string(role_entry<R>().name), *made<R>());
    });
    handlers.serve(*channel_);
  }

  RunProfile& profile() { return *profile_; }

  /// This rank's part of the role, where it was made.
  template <Role R>
  auto& made() {
    return std::get<static_cast<std::size_t>(R)>(made_);
  }

 private:
  std::unique_ptr<engine::parallel::Communicator> split() {
    return world_->split(0, world_->rank());
  }

  template <Role R>
  void make() {
    constexpr const auto& entry = role_entry<R>();
    channel_->run_on_all_ranks(cat("making the ", entry.name), [&] {
      auto mesh = value_or_throw(Mesh::create(split(), entry.sharing == Sharing::grid
                                                           ? policy_grid(config_)
                                                           : Grid{.dp = world_->size()}));
      made<R>() = housed<RoleActor<R>>(
          cpu_of(config_, part_of_machine(world_->size())), std::move(mesh), *profile_,
          [&](const House& house) {
            return role_entry<R>().make({config_, from_, *house.device, house.mesh.get(), output_,
                                         entry.reads_text ? text() : nullptr});
          });
    });
  }

  template <class Actor>
  using Part = std::unique_ptr<Housed<Actor>>;

  const RunConfig& config_;
  std::optional<RunProfile> profile_;
  std::unique_ptr<engine::parallel::Communicator> world_;
  std::shared_ptr<group::GroupChannel> channel_;
  std::string from_;
  const engine::checkpoint::DirectoryLock* output_ = nullptr;
  std::shared_ptr<TextModel> text_;
  OfEachRole<Part> made_;
};

// Rank 0.
class Leader final : public Cast {
  template <Role R>
  RoleRef<R> spawn() {
    const std::string name(role_entry<R>().name);
    if constexpr (!RoleEntryOf<R>::has_model)
      return node_.spawn(name, role_entry<R>().make(session_.config()), {.executor = name});
    else
      return node_.spawn(name, std::make_unique<group::Sharded<Housed<RoleActor<R>>>>(
                                   name, rank_.channel(), std::move(rank_.made<R>())));
  }

 public:
  Leader(Rank& rank, const Session& session)
      : rank_(rank),
        session_(session),
        journal_(session.config().output,
                 cat(session.config().algorithm, ": ", session.config().model),
                 session.config().train.log_every) {}

  int run() {
    const Interrupts interrupts(stop_);
    journal_.on_step([this](std::int64_t step) { rank_.profile().at_step(step); });
    policy_.emplace(spawn<Role::policy>());
    return conduct(session_, *rank_.text(), *this, journal_, stop_);
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
  Rank& rank_;
  const Session& session_;
  RunJournal journal_;
  actors::Stop stop_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_, {.on_answered = [this](const auto& ask) {
                       journal_.answered(ask);
                     }}};
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
    // An exception that left while the group stands would end it as a rank's death does. A failure
    // is told by rank 0, and all leave.
    try {
      rank.begin(session);
      if (rank.leads())
        code = Leader(rank, *session).run();
      else
        rank.follow();
    } catch (const Failure& failure) {
      failed = failure.error();
    }
  }
  if (failed) throw Failure(std::move(*failed));
  return code;
}

}  // namespace troupe::launch
