#include "launch/run/hangs.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "engine/base/hangs/rank_wait.h"
#include "engine/base/log/log.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::run {
namespace {

std::string name_of_rank() {
  return transports::mpi::under_mpirun() ? cat("rank ", transports::mpi::mpirun_rank(), ": ") : "";
}

progress::HangWatchOptions watch_options(std::chrono::seconds limit, std::string process) {
  progress::take_warn_after_from_environment();
  progress::HangWatchOptions options{.process = std::move(process),
                                     .warn_after = progress::warn_after(),
                                     .end_process = end_at_deadline};
  // Later than the deadline of the request that the thread works on, which says more.
  constexpr std::chrono::seconds after_requests{5};
  if (limit > std::chrono::seconds(0)) options.limit = limit + after_requests;
  return options;
}

}  // namespace

void end_at_deadline(const std::string& why) {
  log_to_file(LogLevel::error, why);
  std::fprintf(stderr, "troupe: %s\n", for_terminal(why).c_str());
  std::fflush(stderr);
  ::_exit(exit_code(Errc::timeout));
}

HangGuard::HangGuard(std::chrono::seconds limit) : HangGuard(limit, name_of_rank()) {
}
HangGuard::HangGuard(std::chrono::seconds limit, std::string process)
    : watch_(watch_options(limit, std::move(process))) {
}

Error with_hangs(Error error) {
  if (error.code != Errc::timeout) return error;
  if (const std::string hangs = progress::hangs(); !hangs.empty()) error.what += cat("; ", hangs);
  progress::end_process_after(std::chrono::seconds(5), error.what);
  return error;
}

transports::mpi::MpiOptions mpi_options(std::int64_t timeout) {
  progress::take_warn_after_from_environment();
  return {.deadline = std::chrono::seconds(timeout), .exit_code = exit_code};
}

engine::parallel::ThreadGroupOptions thread_options(std::int64_t timeout) {
  return {.deadline = std::chrono::seconds(timeout), .on_timeout = end_at_deadline};
}

}  // namespace troupe::launch::run
