#include "launch/commands/serve/under_mpirun.h"

#include <memory>
#include <optional>
#include <utility>

#include "actors/group/replicated_engine.h"
#include "engine/base/text/text.h"
#include "launch/commands/rank_group.h"
#include "launch/run/hangs.h"
#include "launch/run/rank_resources.h"
#include "launch/run/run_rank.h"
#include "launch/serve/ranks/rank_watch.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

namespace {

/// What all ranks do in the same order: load their part of the model, start their engine.
class Rank {
 public:
  explicit Rank(ServeOptions options)
      : options_(std::move(options)),
        group_({.tp = options_.tp, .pp = options_.pp}, options_.timeout),
        watch_(group_.mesh().world()) {}

  int run(const EndSignals& signals) {
    load();
    if (group_.mesh().is_root()) return lead(signals);
    engine::serving::Engine engine(loaded_->model.decoder(), loaded_->config);
    group_.channel()->run_on_all_ranks("starting the engine", [&] {
      if (!loaded_->model.pools()) value_or_throw(engine.start());
    });
    group_.follow(engine, serve::api::parts_of(*loaded_));
    return 0;
  }

  /// Ends all ranks; the others cannot continue without this one.
  void abort(const std::exception& error) { group_.abort(error); }

 private:
  void load() {
    const auto& mesh = group_.mesh();
    if (options_.model.model.threads == 0)
      options_.model.model.threads = run::part_of_machine(mesh.world().size());
    group_.channel()->run_on_all_ranks("loading the model", [&] {
      loaded_.emplace(value_or_throw(serve::api::LoadedEngine::load(options_.model, options_.engine,
                                                                    {&mesh.tp(), &mesh.pp(), {}})));
    });
  }

  int lead(const EndSignals& signals) {
    std::unique_ptr<serve::api::ModelSet> models;
    group_.channel()->run_on_all_ranks("starting the engine", [&] {
      auto engine = std::make_unique<actors::group::ReplicatedEngine>(
          loaded_->model.decoder(), loaded_->config, group_.channel(), group_.mesh().world());
      models = value_or_throw(serve::api::ModelSet::start(std::move(*loaded_), std::move(engine)));
    });
    return serve_models(options_, *models, signals);
  }

  ServeOptions options_;
  RankGroup group_;
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
