#include "launch/commands/train.h"

#include "engine/base/log.h"
#include "launch/config/validate_profile.h"
#include "launch/run/in_process.h"
#include "launch/run/settings.h"
#include "launch/run/under_mpi.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {

int train(const Sources& sources) {
  const Resolved run = value_or_throw(resolve(sources));
  for (const std::string& warning : run.warnings) log_warning(warning);
  value_or_throw(check_profile_ranks(run.config, policy_grid(run.config).ranks()));
  return transports::mpi::under_mpirun() ? train_under_mpirun(run.config)
                                         : train_in_process(run.config);
}

}  // namespace troupe::launch
