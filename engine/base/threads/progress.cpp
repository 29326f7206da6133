#include "engine/base/threads/progress.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::progress {
namespace {

struct State {
  std::uint64_t id = 0;
  std::string name;
  pid_t thread = 0;
  const Counters* counters = nullptr;
  const Jobs* jobs = nullptr;
  const void* pool = nullptr;
  std::vector<std::string> operations{};
  int waits = 0;
};

void leave(void* state);

// Never destroyed: threads end after main() returned.
struct Registry {
  Registry() {
    if (::pthread_key_create(&at_end, leave) != 0) throw std::bad_alloc();
  }
  std::mutex mutex;
  std::vector<State*> threads;
  std::uint64_t last_id = 0, pieces_of_ended = 0;
  std::map<std::string, std::string, std::less<>> hangs;
  pthread_key_t at_end{};  ///< removes the entry of a thread that ends
};
Registry& registry() {
  static Registry* const made = new Registry;
  return *made;
}

// The entry of the calling thread: made by its first ThreadScope or Operation, removed at its end.
// A key of POSIX in place of a destructor: the C++ library would allocate to register one, and
// glibc ends the process where that fails.
constinit thread_local State* own = nullptr;
alignas(State) constinit thread_local std::array<std::byte, sizeof(State)> own_memory{};

State& own_state() {
  if (own) return *own;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.threads.reserve(all.threads.size() + 1);
  if (::pthread_setspecific(all.at_end, own_memory.data()) != 0) throw std::bad_alloc();
  own = new (own_memory.data()) State{.id = ++all.last_id,
                                      .name = "main",
                                      .thread = static_cast<pid_t>(::syscall(SYS_gettid)),
                                      .counters = &counters};
  all.threads.push_back(own);
  return *own;
}

void leave(void*) {
  if (!own) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.threads, own);
  all.pieces_of_ended += counters.pieces.exchange(0, std::memory_order_relaxed);
  std::destroy_at(std::exchange(own, nullptr));
}

// Changes the entry of the calling thread, and counts as progress.
template <class Change>
void change(const Change& change) {
  State& state = own_state();
  const std::lock_guard lock(registry().mutex);
  change(state);
  advance();
}

// Without repetitions: a group's leader handles the message that its node handles.
std::string operation_of(const State& state) {
  std::vector<std::string> names;
  for (const std::string& name : state.operations)
    if (names.empty() || names.back() != name) names.push_back(name);
  return join(names, ": ");
}

}  // namespace

ThreadScope::ThreadScope(std::string name, const Jobs* jobs, const void* pool) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
  change([&](State& state) {
    state.name = std::move(name);
    state.jobs = jobs;
    state.pool = pool;
  });
}
ThreadScope::~ThreadScope() {
  leave(nullptr);
}

Operation::Operation(std::string name) {
  change([&](State& state) { state.operations.push_back(std::move(name)); });
}
Operation::~Operation() {
  change([](State& state) { state.operations.pop_back(); });
}

void begin_wait() {
  change([](State& state) { ++state.waits; });
}
void end_wait() {
  change([](State& state) { --state.waits; });
}
Wait::Wait() {
  begin_wait();
}
Wait::~Wait() {
  end_wait();
}

std::vector<ThreadLook> look_at_threads() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<ThreadLook> looks;
  for (const State* state : all.threads) {
    const Counters& c = *state->counters;
    const std::uint64_t jobs_done = state->jobs ? state->jobs->finished.load() : 0;
    const bool has_jobs = state->jobs && state->jobs->posted.load() != jobs_done;
    looks.push_back({.id = state->id,
                     .name = state->name,
                     .thread = state->thread,
                     .operation = operation_of(*state),
                     .finished = c.pieces.load(std::memory_order_relaxed) + jobs_done,
                     .works = state->waits == 0 && (has_jobs || !state->operations.empty() ||
                                                    c.in_item.load(std::memory_order_relaxed) != 0),
                     .pool = state->pool,
                     .waits_for = c.waits_for.load(std::memory_order_relaxed)});
  }
  return looks;
}

std::uint64_t total_pieces() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::uint64_t sum = all.pieces_of_ended;
  for (const State* state : all.threads)
    sum += state->counters->pieces.load(std::memory_order_relaxed);
  return sum;
}

void add_hang(std::string_view of, std::string_view what) {
  const std::lock_guard lock(registry().mutex);
  registry().hangs.insert_or_assign(std::string(of), std::string(what));
}

bool remove_hang(std::string_view of) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().hangs.find(of);
  if (found == registry().hangs.end()) return false;
  registry().hangs.erase(found);
  return true;
}

std::string hangs() {
  const std::lock_guard lock(registry().mutex);
  std::string all;
  for (const auto& [of, what] : registry().hangs) {
    if (!all.empty()) all += "; ";
    all += what;
  }
  return all;
}

}  // namespace troupe::progress
