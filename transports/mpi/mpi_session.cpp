#include "transports/mpi/mpi_session.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "engine/base/text/text.h"
#include "transports/mpi/event_counts.h"
#include "transports/mpi/rank_states.h"
#include "transports/mpi/started_ranks.h"

namespace troupe::transports::mpi {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds min_sleep = 50us, max_sleep = 2000us;

/// At least this long for the ranks to start: MPI_Init itself has no deadline.
constexpr std::chrono::nanoseconds min_start_time = 1min;

/// How long a rank looks without waiting: about the time in which a waiting one would be awake.
constexpr std::chrono::nanoseconds spin_time = 50us;

/// Sets what Open MPI needs with more ranks than cores, and in a container, where a process may not
/// read another's memory. Ranks of one host use shared memory only and open no ports. Variables
/// that are already set are kept.
void set_defaults() {
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  if (started_ranks().on_one_host()) setenv("OMPI_MCA_btl", "self,vader", 0);
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, length);
}

}  // namespace

void Session::pause(std::chrono::nanoseconds since, bool idle, std::uint32_t events) const {
  // sched_yield() would give away the core for milliseconds where other processes are busy.
  if (!idle && since < spin_time) return;
  const auto sleep = std::clamp(since / 8, min_sleep, max_sleep);
  if (events_)
    events_->await(events, sleep);
  else
    std::this_thread::sleep_for(sleep);
}

Result<std::shared_ptr<Session>> Session::start(MpiOptions options) {
  int before = 0;
  MPI_Initialized(&before);
  if (before)
    return fail(Errc::usage, "MPI can be started once per process and was already started");
  set_defaults();
  auto segments = SegmentFolder::create();
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
  auto session = std::shared_ptr<Session>(new Session(std::move(options), std::move(segments)));
  session->remove_segment_names();
  return session;
}

Session::Session(MpiOptions options, std::optional<SegmentFolder> segments)
    : options_(std::move(options)),
      segments_(std::move(segments)),
      exceptions_(std::uncaught_exceptions()) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
}

void Session::remove_segment_names() {
  constexpr std::string_view what = "the start of all ranks";
  std::vector<MPI_Request> all_started(1);
  check_success(MPI_Ibarrier(MPI_COMM_WORLD, all_started.data()), what);
  wait_all(all_started, {.what = what, .deadline = std::max(options_.deadline, min_start_time)});
  if (segments_) segments_->remove_files();
}

Session::~Session() {
  if (std::uncaught_exceptions() > exceptions_) abort("an exception ended this rank's work");
  MPI_Request request;
  check_success(MPI_Ibarrier(MPI_COMM_WORLD, &request), "leaving the group");
  wait(request, 0, "leaving the group");
  if (segments_) segments_->restore_files();
  MPI_Finalize();
}

bool Session::shares_memory() const {
  return options_.shared_memory && started_ranks().on_one_host();
}

void Session::use(std::unique_ptr<EventCounts> events) {
  events_ = std::move(events);
}

void Session::notify(int rank) const {
  if (events_) events_->advance(rank);
}

std::uint32_t Session::events() const {
  return events_ ? events_->read() : 0;
}

bool Session::progress() const {
  bool moved = false;
  for (Progress* messages : messages_) moved |= messages->progress();
  if (moved) moves_.store(moves() + 1, std::memory_order_relaxed);
  return moved;
}

void Session::use(std::unique_ptr<RankStates> states) {
  states_ = std::move(states);
}

std::vector<int> Session::missing_in(const Waiting& waiting) const {
  const auto locked = lock();
  return waiting.missing ? waiting.missing() : std::vector<int>();
}

std::vector<int> Session::hindering(const Waiting& waiting) const {
  const std::vector<int> missing = missing_in(waiting);
  return states_ ? states_->behind(missing) : missing;
}

std::string Session::describe(const std::vector<int>& ranks) const {
  if (states_) return states_->describe(ranks);
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return names.empty() ? "the other ranks"
                       : cat(names.size() == 1 ? "rank " : "ranks ", join(names, ", "));
}

void Session::watch(progress::RankWait& wait, const Waiting& waiting, bool idle) const {
  const auto now = progress::RankWait::Time::clock::now();
  // Without shared memory nobody knows whether the others advance: then they alone warn.
  if (!states_) {
    wait.look("", moves() + static_cast<std::uint64_t>(now.time_since_epoch().count()), now);
    return;
  }
  const std::vector<int> missing = missing_in(waiting);
  if (idle) {
    const auto silent = wait.look(states_->describe(missing), states_->beats_of(missing), now);
    if (silent > deadline_of(waiting)) time_out(waiting, silent);
    return;
  }
  states_->wait_for(missing.size() == 1 ? missing[0] : RankStates::several);
  const std::vector<int> ranks = states_->behind(missing);
  wait.look(states_->describe(ranks), states_->progress_of(ranks), now);
}

void Session::end_watch() const {
  if (states_) states_->wait_for(RankStates::no_rank);
}

void Session::time_out(const Waiting& waiting, std::chrono::nanoseconds waited) const {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  abort(cat("'", waiting.what, "': waited ",
            to_text(std::chrono::duration<double>(waited).count(), 1), " s for ",
            describe(hindering(waiting)), " of ", size, ", which neither arrived nor aborted"),
        Errc::timeout);
}

std::chrono::nanoseconds Session::deadline_of(const Waiting& waiting) const {
  return waiting.deadline.value_or(options_.deadline);
}

void Session::wait(MPI_Request request, std::size_t bytes, std::string_view what) const {
  const auto done = [&] {
    int complete = 0;
    check_success(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), what);
    return complete != 0;
  };
  wait_until(done, {.bytes = bytes, .what = what});
}

std::vector<MPI_Status> Session::wait_all(std::vector<MPI_Request>& requests,
                                          const Waiting& waiting) const {
  std::vector<MPI_Status> statuses(requests.size());
  const auto done = [&] {
    int complete = 0;
    check_success(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete, statuses.data()),
        waiting.what);
    return complete != 0;
  };
  wait_until(done, waiting);
  return statuses;
}

void Session::check_success(int code, std::string_view what) const {
  if (code != MPI_SUCCESS) abort(cat("'", what, "': MPI: ", text_of(code)));
}

void Session::abort(std::string_view why, Errc kind) const noexcept {
  options_.on_abort(cat("rank ", rank_, " ended: ", why));
  segments_.reset();
  MPI_Abort(MPI_COMM_WORLD, options_.exit_code(kind));
  std::abort();
}

}  // namespace troupe::transports::mpi
