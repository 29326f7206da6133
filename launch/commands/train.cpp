#include "launch/commands/train.h"

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/commands/dry_run.h"
#include "launch/memory/check_memory.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/validate_profile.h"
#include "launch/run/check_grids.h"
#include "launch/run/in_process.h"
#include "launch/run/interrupt.h"
#include "launch/run/settings.h"
#include "launch/run/under_mpi.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

int train(const recipes::Sources& sources, bool only_dry_run) {
  run::handle_interrupts();
  if (transports::mpi::under_mpirun() && (sources.file == "-" || sources.file == "/dev/stdin"))
    throw Failure({Errc::usage,
                   "--config -: mpirun passes its standard input to one rank only; write the "
                   "configuration to a file"});
  recipes::Resolved run = value_or_throw(recipes::resolve(sources));
  if (auto lower = value_or_throw(run::limit_max_length(run.config)); !lower.empty())
    run.warnings.push_back(std::move(lower));
  for (const std::string& warning : run.warnings) log_warning(warning);
  value_or_throw(recipes::check_profile_ranks(run.config, run.config.parallel.ranks()));
  value_or_throw(run::check_grids(run.config));
  if (const auto warning = value_or_throw(memory::check_memory(
          run.config, value_or_throw(recipes::spec_of(run.config, run.config.model)),
          memory::memory_place()));
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
    return dry_run(run.config, run::train_in_process);
  }
  return transports::mpi::under_mpirun() ? run::train_under_mpirun(run.config)
                                         : run::train_in_process(run.config);
}

}  // namespace troupe::launch::commands
