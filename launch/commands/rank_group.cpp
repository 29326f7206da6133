#include "launch/commands/rank_group.h"

#include <memory>
#include <optional>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/commands/prompt_model.h"
#include "launch/run/hangs.h"
#include "launch/run/run_rank.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

using engine::parallel::Grid;
using engine::parallel::Mesh;

namespace {

Mesh mesh_of(const Grid& grid, std::int64_t timeout) {
  if (!transports::mpi::under_mpirun())
    throw Failure(
        {Errc::usage, cat("--tp ", grid.tp, " --pp ", grid.pp, ": expected ", grid.ranks(),
                          " ranks, found one process; start it with mpirun -n ", grid.ranks())});
  value_or_throw(engine::parallel::check_fits(grid, transports::mpi::mpirun_size()));
  return value_or_throw(
      Mesh::create(value_or_throw(transports::mpi::mpi_world(run::mpi_options(timeout))), grid));
}

/// Loads the model when rank 0 does (PromptEngine), and follows its engine.
void follow(const RankGroup& group, const GenerateOptions& options) {
  actors::group::GroupChannel& channel = *group.channel();
  while (channel.next()) {
    std::optional<PromptModel> model;
    try {
      channel.run_on_all_ranks("loading the model", [&] { model.emplace(options); });
    } catch (const Failure&) {
      continue;  // which all ranks have, and the leader reports
    }
    engine::serving::Engine engine(model->decoder(), model->config());
    group.follow(
        engine, {.text = [&model](const auto& prompt, bool) { return model->text_after(prompt); }});
    return;
  }
}

}  // namespace

RankGroup::RankGroup(const Grid& grid, std::int64_t timeout)
    : mesh_(mesh_of(grid, timeout)),
      channel_(std::make_shared<actors::group::GroupChannel>(
          mesh_.world().split(0, mesh_.world().rank()))) {
}

void RankGroup::follow(engine::serving::Engine& engine, actors::group::EngineParts parts) const {
  try {
    actors::group::EngineFollower(engine, std::move(parts), *channel_, mesh_.world()).serve();
  } catch (const std::exception& error) {
    abort(error);  // the leader knows of no failure of another rank
  }
}

void RankGroup::abort(const std::exception& error) const {
  run::abort_ranks(mesh_.world(), error);
}

int with_rank_group(GenerateOptions options,
                    const std::function<int(const GenerateOptions&)>& command) {
  const bool alone = options.grid.ranks() == 1 && transports::mpi::mpirun_size() == 1;
  if (alone) return command(options);
  const run::HangGuard hangs;
  return run::run_rank([&] { return std::make_unique<RankGroup>(options.grid, options.timeout); },
                       [&](const RankGroup& group) {
                         options.group = &group;
                         if (group.mesh().is_root()) return command(options);
                         follow(group, options);
                         return 0;
                       });
}

}  // namespace troupe::launch::commands
