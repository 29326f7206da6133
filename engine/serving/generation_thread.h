// GenerationThread: a thread that steps an Engine, for servers. Jobs wait here until the engine has
// room, the clients in turn.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/serving/engine.h"
#include "engine/serving/fair_queue.h"

namespace troupe::engine::serving {

struct ServiceLimits {
  std::int32_t max_batch = 64;         ///< sequences generated at the same time
  std::size_t max_waiting = 1024;      ///< sequences that wait; more are refused
  std::chrono::seconds deadline{600};  ///< from submit() to the end of a sequence
};

/// Every accepted job ends with one call of on_end, besides those of the engine with Errc::timeout
/// after the deadline, bad_input or usage where its logits leave no token to sample, full where a
/// step lacked memory and it was the last one to start, closed when the thread ends.
class GenerationThread {
 public:
  /// Starts the thread, which alone uses the started engine from then on. `engine` outlives it.
  GenerationThread(Engine& engine, ServiceLimits limits);
  ~GenerationThread();  ///< stop()
  GenerationThread(const GenerationThread&) = delete;
  GenerationThread& operator=(const GenerationThread&) = delete;

  /// Ends every job with Errc::closed and joins the thread; later calls of submit() fail.
  void stop();

  // From here on, every function may be called from any thread.

  Result<> check_request(const generate::Request& request) const {
    return engine_.check_request(request);
  }
  /// Accepts all jobs or none, and returns their ids. `client`: sequences of different clients
  /// start in turn. Errc::full when too many sequences wait; closed after the end.
  Result<std::vector<std::uint64_t>> submit(std::vector<Job> jobs, const std::string& client);
  /// Ends a job before the next step; its pages are free then. Nothing happens to a finished one.
  void cancel(std::uint64_t id);
  ServiceCounters counters() const;

  /// After the step in progress, no token is sampled and no sequence starts until resume(). Jobs
  /// are accepted and wait; their deadlines and cancellations end them after resume().
  void pause() { set_paused(true); }
  void resume() { set_paused(false); }
  bool paused() const;
  /// Calls `work` between two steps, also during a pause, and waits for it. Errors of `work`;
  /// closed after the end.
  Result<> between_steps(const std::function<Result<>()>& work);
  /// Engine::set_weights() between two steps. Returns the version of the tokens that follow.
  Result<std::uint64_t> change_weights(const std::function<Result<>()>& write);
  /// Engine::set_weights() without waiting. A failure is logged.
  void adopt_weights(std::uint64_t version, std::function<Result<>()> write,
                     bool between_sequences);

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    std::uint64_t id = 0;
    Job job;
    Clock::time_point deadline;
  };
  /// `open`: false at the end, where nothing is done.
  using Work = std::function<void(bool open)>;

  void set_paused(bool paused);
  void post(Work work);
  void run();
  bool has_work() const;
  bool take_changes();
  void end_dropped();
  void end_overdue();
  void start_waiting();
  void start(Pending pending);
  void step();
  void publish();

  Engine& engine_;
  const ServiceLimits limits_;

  // Used by the thread only.
  std::map<std::uint64_t, Clock::time_point> deadlines_;  // of the jobs of the engine
  std::vector<Pending> dropped_;
  std::vector<std::uint64_t> ending_;
  std::vector<Work> changing_;
  Clock::time_point next_sweep_{};
  bool steps_ = true;  // not paused

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  FairQueue<Pending> waiting_;
  std::vector<std::uint64_t> cancelled_;
  std::vector<Work> work_;
  std::uint64_t next_id_ = 0;
  bool stopping_ = false, paused_ = false;
  ServiceCounters counters_;

  std::thread thread_;
};

}  // namespace troupe::engine::serving
