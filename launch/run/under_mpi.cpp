#include "launch/run/under_mpi.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "actors/group/sharded.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/ops/devices/make_device.h"
#include "engine/parallel/all_reduce.h"
#include "launch/recipes/recipes.h"
#include "launch/run/algorithm_run.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/resumable.h"
#include "launch/run/run_rank.h"
#include "launch/run/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::run {
namespace {

namespace group = actors::group;
using engine::parallel::Mesh;

// Work of all ranks in the same order: receive the checkpoint to resume from, create their part of
// each actor.
class Rank {
 public:
  explicit Rank(const config::RunConfig& config)
      : config_(config),
        hangs_(std::chrono::seconds(config.train.timeout)),
        world_(value_or_throw(transports::mpi::mpi_world(mpi_options(config.parallel.timeout)))),
        channel_(std::make_shared<group::GroupChannel>(split())),
        rollout_channel_(own_threads(recipes::Role::rollout)
                             ? std::make_shared<group::GroupChannel>(split())
                             : nullptr) {}

  bool leads() const { return world_->rank() == 0; }
  /// Whether the ranks handle the messages of a role on a thread of their own, beside those of
  /// the other roles.
  bool own_threads(recipes::Role role) const {
    return role == recipes::Role::rollout && rollouts_have_threads(config_);
  }
  /// Where the messages of a role are forwarded.
  const std::shared_ptr<group::GroupChannel>& channel(recipes::Role role) const {
    return own_threads(role) ? rollout_channel_ : channel_;
  }

  /// Creates `session` on rank 0. If that fails, every rank throws.
  void begin(std::optional<Session>& session) {
    channel_->run_on_all_ranks("locking the output directory", [&] {
      if (leads()) session.emplace(config_);
    });
    resume_from_ = engine::parallel::gather_strings(*world_, session ? session->resume_from() : "",
                                                    "the checkpoint to resume from")
                       .front();
    channel_->run_on_all_ranks("creating the profile", [&] {
      if (leads()) profile_.emplace(config_, "", true);
    });
    channel_->run_on_all_ranks("opening the profile", [&] {
      if (!leads()) profile_.emplace(config_, "", false);
    });
    output_ = session ? &session->output() : nullptr;
    const recipes::RolesNeeded needed = recipes::roles_of(config_);
    for_each_role([&]<recipes::Role R>() {
      if constexpr (RoleEntryOf<R>::has_model)
        if (needed.of(R).needed) make<R>();
    });
  }

  std::shared_ptr<TextModel> text() {
    if (!text_)
      text_ = value_or_throw(TextModel::load(config_, spec_of_run(config_, resume_from_)));
    return text_;
  }

  void follow() {
    group::HandlerTable handlers, rollout_handlers;
    for_each_role([&]<recipes::Role R>() {
      if (part<R>())
        (own_threads(R) ? rollout_handlers : handlers).add(std::string(to_string(R)), *part<R>());
    });
    std::thread rollouts;
    if (rollout_channel_)
      rollouts = std::thread([&] {
        const progress::ThreadScope watched("rollouts");
        try {
          rollout_handlers.serve(*rollout_channel_);
        } catch (const std::exception& error) {
          world_->abort(error.what());
        }
      });
    handlers.serve(*channel_);
    if (rollouts.joinable()) rollouts.join();
  }

  profile::RunProfile& profile() { return *profile_; }

  /// Ends all ranks; the others cannot continue without this one.
  void abort(const std::exception& error) { abort_ranks(*world_, error); }

  /// This rank's part of the role; null if the run does not need the role.
  template <recipes::Role R>
  auto& part() {
    return std::get<static_cast<std::size_t>(R)>(parts_);
  }

 private:
  std::unique_ptr<engine::parallel::Communicator> split() {
    return world_->split(0, world_->rank());
  }

  // Roles that take turns share a device: what one leaves free is memory of the next.
  RankResources resources_of(recipes::Role role, Mesh mesh) {
    if (own_threads(role)) return {cpu_of_rollouts(config_), std::move(mesh), nullptr};
    if (!device_)
      device_ =
          device_of_rank(cpu_of(config_, part_of_trainer(config_, part_of_machine(world_->size()))),
                         world_->rank(), &*profile_);
    return {device_, std::move(mesh), &*profile_};
  }

  template <recipes::Role R>
  void make() {
    constexpr const auto& entry = role_entry<R>();
    const config::RunConfig& config =
        configs_.emplace(R, recipes::config_for(config_, R, recipes::RankKind::processes))
            .first->second;
    channel_->run_on_all_ranks(cat("creating the ", to_string(R)), [&] {
      auto mesh = value_or_throw(Mesh::create(split(), config.parallel));
      part<R>() = make_role_on_rank<RoleActor<R>>(
          resources_of(R, std::move(mesh)), [&](const RankResources& rank) {
            return entry.make({config, resume_from_, *rank.device, rank.mesh.get(), output_,
                               entry.reads_text ? text() : nullptr});
          });
    });
  }

  template <class Actor>
  using Part = std::unique_ptr<RoleOnRank<Actor>>;

  const config::RunConfig& config_;
  const HangGuard hangs_;                               // until the rank has left the group
  std::map<recipes::Role, config::RunConfig> configs_;  ///< of each model, with its grid
  std::optional<profile::RunProfile> profile_;
  std::shared_ptr<engine::ops::Device> device_;  ///< of all roles but rollouts with own threads
  std::unique_ptr<engine::parallel::Communicator> world_;
  std::shared_ptr<group::GroupChannel> channel_;
  std::shared_ptr<group::GroupChannel> rollout_channel_;  ///< null: channel_ is used
  std::string resume_from_;
  const engine::checkpoint::DirectoryLock* output_ = nullptr;
  std::shared_ptr<TextModel> text_;
  TupleOverRoles<Part> parts_;
};

// The placement on rank 0.
class UnderMpi final : public Placement {
 public:
  UnderMpi(Rank& rank, const Session& session)
      : rank_(rank), session_(session), run_(session, rank.profile()) {}

  int run() {
    const Interrupts interrupts(run_.stop());
    addresses(recipes::Role::policy);
    return run_.run(*this, *rank_.text());
  }

  actors::Node& node() override { return local_.node(); }
  std::vector<transports::Address> addresses(recipes::Role role) override {
    return local_.address(
        role, session_.config(), [this]<recipes::Role R>(const std::string& name) {
          auto actor = std::make_unique<group::Sharded<RoleOnRank<RoleActor<R>>>>(
              name, rank_.channel(R), std::move(rank_.part<R>()));
          node().spawn(name, std::move(actor),
                       rank_.own_threads(R) ? actors::ActorOptions{.executor = name}
                                            : actors::ActorOptions());
        });
  }
  std::size_t chunks_per_rollout() const override { return chunks_in_process(session_.config()); }
  bool streams_weights() const override { return session_.config().parallel.ranks() > 1; }

 private:
  Rank& rank_;
  const Session& session_;
  AlgorithmRun run_;
  LocalNode local_{run_.node_options()};
};

/// A rank and, on rank 0, the run, which ends before the rank leaves the group.
struct RankOfRun {
  explicit RankOfRun(const config::RunConfig& config) : rank(config) {}
  void abort(const std::exception& error) { rank.abort(error); }
  int run() {
    // mpirun forwards signals to every rank; rank 0 alone decides when to stop.
    if (!rank.leads()) ignore_interrupts(KeepTerm::no);
    rank.begin(session);
    if (rank.leads()) return UnderMpi(rank, *session).run();
    rank.follow();
    return 0;
  }

  Rank rank;
  std::optional<Session> session;
};

}  // namespace

int train_under_mpirun(const config::RunConfig& config) {
  return run_rank([&] { return std::make_unique<RankOfRun>(config); },
                  [](RankOfRun& rank) { return rank.run(); });
}

}  // namespace troupe::launch::run
