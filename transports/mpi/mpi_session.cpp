#include "transports/mpi/mpi_session.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "engine/base/text.h"

namespace troupe::transports::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto min_sleep = 50us, max_sleep = 2000us;

/// Expected time of a transfer: a small message between ranks that share cores, plus 0.5 GB/s.
Clock::duration spin_time(std::size_t bytes) {
  return 100us + std::chrono::nanoseconds(2 * bytes);
}

/// Sets what Open MPI needs with more ranks than cores, and in a container, where a process may not
/// read another's memory. Ranks of one host use shared memory only and open no ports. Variables
/// that are already set are kept.
void set_defaults() {
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  const char* all = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (all && local && std::string_view(all) == local) setenv("OMPI_MCA_btl", "self,vader", 0);
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, length);
}

}  // namespace

Result<std::shared_ptr<Session>> Session::start(MpiOptions options) {
  int before = 0;
  MPI_Initialized(&before);
  if (before)
    return fail(Errc::usage, "MPI can be started once per process and was already started");
  set_defaults();
  int provided = MPI_THREAD_SINGLE;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
      code != MPI_SUCCESS)
    return fail(Errc::unsupported, cat("MPI cannot start: ", text_of(code)));
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return fail(
        Errc::unsupported,
        "this MPI was built without thread support; install one with MPI_THREAD_SERIALIZED");
  }
  return std::shared_ptr<Session>(new Session(std::move(options)));
}

Session::Session(MpiOptions options)
    : options_(std::move(options)), exceptions_(std::uncaught_exceptions()) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
}

Session::~Session() {
  if (std::uncaught_exceptions() > exceptions_) abort("an exception ended this rank's work");
  MPI_Request request;
  check_success(MPI_Ibarrier(MPI_COMM_WORLD, &request), "leaving the group");
  wait(request, 0, "leaving the group");
  MPI_Finalize();
}

template <class Test>
void Session::wait_for(const Test& test, std::size_t bytes, std::string_view what,
                       std::optional<std::chrono::nanoseconds> deadline, bool idle) const {
  const auto begin = Clock::now();
  const auto spin = spin_time(bytes);
  while (!test()) {
    const auto waited = Clock::now() - begin;
    if (!idle && waited > deadline.value_or(options_.deadline))
      abort(cat("'", what, "': timed out after ",
                to_text(std::chrono::duration<double>(waited).count(), 1),
                " s of waiting for the other ranks"));
    if (!idle && waited < spin)
      sched_yield();
    else
      std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 8, min_sleep, max_sleep));
  }
}

void Session::wait(MPI_Request request, std::size_t bytes, std::string_view what, bool idle) const {
  wait_for(
      [&] {
        int done = 0;
        check_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
        return done != 0;
      },
      bytes, what, std::nullopt, idle);
}

std::vector<MPI_Status> Session::wait_all(std::vector<MPI_Request>& requests, std::size_t bytes,
                                          std::string_view what,
                                          std::optional<std::chrono::nanoseconds> deadline) const {
  std::vector<MPI_Status> statuses(requests.size());
  wait_for(
      [&] {
        int done = 0;
        check_success(
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data()),
            what);
        return done != 0;
      },
      bytes, what, deadline, false);
  return statuses;
}

void Session::check_success(int code, std::string_view what) const {
  if (code != MPI_SUCCESS) abort(cat("'", what, "': MPI: ", text_of(code)));
}

void Session::abort(std::string_view why) const noexcept {
  options_.on_abort(cat("rank ", rank_, " ended: ", why));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::abort();
}

}  // namespace troupe::transports::mpi
