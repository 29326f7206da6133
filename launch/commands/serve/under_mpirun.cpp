#include "launch/commands/serve/under_mpirun.h"

#include <memory>
#include <optional>
#include <utility>

#include "actors/group/group_channel.h"
#include "engine/base/text.h"
#include "engine/parallel/grid.h"
#include "launch/commands/serve/engine_follower.h"
#include "launch/run/hangs.h"
#include "launch/run/rank_resources.h"
#include "launch/run/run_rank.h"
#include "launch/serve/ranks/rank_watch.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

namespace {

using engine::parallel::Mesh;

/// What all ranks do in the same order: load their part of the model, start their engine.
class Rank {
 public:
  explicit Rank(ServeOptions options)
      : options_(std::move(options)),
        mesh_(value_or_throw(Mesh::create(
            value_or_throw(transports::mpi::mpi_world(run::mpi_options(options_.timeout))),
            {.tp = options_.tp, .pp = options_.pp}))),
        channel_(std::make_shared<actors::group::GroupChannel>(
            mesh_.world().split(0, mesh_.world().rank()))),
        watch_(mesh_.world()) {}

  int run(const EndSignals& signals) {
    load();
    if (mesh_.is_root()) return lead(signals);
    std::unique_ptr<EngineFollower> follower;
    channel_->run_on_all_ranks("starting the engine", [&] {
      follower = value_or_throw(EngineFollower::create(std::move(*loaded_)));
    });
    try {
      follower->serve(*channel_);
    } catch (const std::exception& error) {
      abort(error);  // the leader knows of no failure of another rank
    }
    return 0;
  }

  /// Ends all ranks; the others cannot continue without this one.
  void abort(const std::exception& error) { run::abort_ranks(mesh_.world(), error); }

 private:
  void load() {
    if (options_.model.model.threads == 0)
      options_.model.model.threads = run::part_of_machine(mesh_.world().size());
    channel_->run_on_all_ranks("loading the model", [&] {
      loaded_.emplace(value_or_throw(serve::api::LoadedEngine::load(
          options_.model, options_.engine, {&mesh_.tp(), &mesh_.pp(), {}})));
    });
  }

  int lead(const EndSignals& signals) {
    std::unique_ptr<serve::api::ModelSet> models;
    channel_->run_on_all_ranks("starting the engine", [&] {
      models = value_or_throw(serve::api::ModelSet::start(
          std::move(*loaded_),
          std::make_unique<serve::ranks::EngineLeader>(channel_, mesh_.world())));
    });
    return serve_models(options_, *models, signals);
  }

  ServeOptions options_;
  Mesh mesh_;
  std::shared_ptr<actors::group::GroupChannel> channel_;
  serve::ranks::RankWatch watch_;  // ends before the channel, which tells the others to end
  std::optional<serve::api::LoadedEngine> loaded_;
};

void check_grid(const ServeOptions& options, int ranks) {
  const int needed = options.tp * options.pp;
  if (needed == ranks) return;
  throw Failure({Errc::usage,
                 cat("--tp ", options.tp, " --pp ", options.pp, " needs ", needed,
                     needed == 1 ? " rank" : " ranks", ", and there ", ranks == 1 ? "is " : "are ",
                     ranks, "; mpirun -n ", needed, " troupe serve ... starts as many")});
}

}  // namespace

void check_alone(const ServeOptions& options) {
  check_grid(options, 1);
}

int serve_under_mpirun(ServeOptions options) {
  check_grid(options, transports::mpi::mpirun_size());
  // mpirun forwards signals to every rank; rank 0 alone waits for them.
  const EndSignals signals;
  const run::HangGuard hangs;
  return run::run_rank([&] { return std::make_unique<Rank>(std::move(options)); },
                       [&](Rank& rank) { return rank.run(signals); });
}

}  // namespace troupe::launch::commands
