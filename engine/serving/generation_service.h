// GenerationService: a Generator in a thread of its own, for servers: sequences join and leave
// between two decoding steps.
//
// Tokens are those that the Generator computes for the request alone (generator.h). Every accepted
// job ends with exactly one call of on_end, whatever happens: completion, cancellation, a failure
// of its row, the deadline, or the end of the service.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/generate/generator.h"
#include "engine/serving/other_ranks.h"

namespace troupe::engine::serving {

/// One sequence. The callbacks run in the service's thread and delay its next step: they hand the
/// event over and return. They may call cancel(). What they throw ends this sequence with the error
/// of the exception.
struct Job {
  /// Shared by the sequences of a prompt. The service chooses the id; sample_id is that of the job.
  std::shared_ptr<const generate::Request> request;
  std::uint64_t sample_id = 0;     ///< Request::sample_id
  RequestSource source;            ///< of `request`, for other ranks
  std::function<void()> on_start;  ///< it waits no longer
  /// The scores of the prompt, where the request asks for them, before its first token.
  std::function<void(const generate::PromptScores&)> on_prompt;
  std::function<void(const generate::TokenEvent&)> on_token;
  /// The finished sequence (finish: cancelled after cancel()), or Errc::timeout after the deadline,
  /// bad_input or usage where its logits leave no token to sample, full where a step lacked memory
  /// and it was the last one to start, closed when the service ends. Called again, with the error,
  /// if it throws.
  std::function<void(Result<generate::Generation>)> on_end;
};

struct ServiceLimits {
  std::int32_t max_batch = 64;         ///< sequences generated at the same time
  std::size_t max_waiting = 1024;      ///< sequences that wait; more are refused
  std::chrono::seconds deadline{600};  ///< from submit() to the end of a sequence
};

/// Steps by their tokens.
struct StepTokens {
  static constexpr std::array<double, 13> bounds{1,   8,    16,   32,   64,   128,  256,
                                                 512, 1024, 2048, 4096, 8192, 16384};
  std::array<std::int64_t, bounds.size() + 1> counts{};  ///< up to each of the bounds, and above
  std::int64_t sum = 0;                                  ///< of the tokens

  /// Counts a step after which the sum is `total`; none that computed nothing.
  void count_up_to(std::int64_t total) {
    if (total == sum) return;
    const auto bin = std::ranges::lower_bound(bounds, static_cast<double>(total - sum));
    ++counts[static_cast<std::size_t>(bin - bounds.begin())];
    sum = total;
  }
};

/// A snapshot, and sums since the start.
struct ServiceCounters {
  std::int64_t running = 0, waiting = 0;
  std::int64_t pages = 0, free_pages = 0, idle_pages = 0;
  std::int64_t prefix_queries = 0, prefix_hits = 0;
  std::int64_t drafted = 0, accepted = 0;
  std::int64_t prompt_tokens = 0, generated_tokens = 0, preemptions = 0, steps = 0;
  std::uint64_t version = 0;  ///< of the weights
  StepTokens step_tokens;
};

class GenerationService {
 public:
  /// Starts the thread. `decoder` and `others` must outlive the service, and no one else may use
  /// them. `config`: max_sequences, on_token, on_prompt and stop are replaced. `others`: the ranks
  /// that share the decoder; nullptr: none. Errc::usage for invalid sizes.
  static Result<std::unique_ptr<GenerationService>> start(models::Decoder& decoder,
                                                          generate::GeneratorConfig config,
                                                          ServiceLimits limits,
                                                          OtherRanks* others = nullptr);
  ~GenerationService();  ///< stop()
  GenerationService(const GenerationService&) = delete;
  GenerationService& operator=(const GenerationService&) = delete;

  /// Ends every job with Errc::closed and joins the thread; later calls of submit() fail.
  void stop();

  // From here on, every function may be called from any thread.

  /// Generator::check_request().
  Result<> check_request(const generate::Request& request) const;
  /// Accepts all jobs or none, and returns their ids. `client`: sequences of different clients
  /// start in turn. Errc::full when too many sequences wait; closed after the end.
  Result<std::vector<std::uint64_t>> submit(std::vector<Job> jobs, const std::string& client);
  /// Ends a job before the next step; its pages are free then. Nothing happens to a finished one.
  void cancel(std::uint64_t id);
  ServiceCounters counters() const;

  /// After the step in progress, no token is sampled and no sequence starts until resume(). Jobs
  /// are accepted and wait; their deadlines and cancellations end them after resume().
  void pause();
  void resume();
  bool paused() const;
  /// Calls `change`, which writes new weights into the decoder, between two steps, also during a
  /// pause; unfinished sequences continue with them, their cache recomputed. Returns the version of
  /// the tokens that follow, one above the version before. Errors of `change`, which must then have
  /// written nothing; closed after the end.
  Result<std::uint64_t> change_weights(std::function<Result<>()> change);
  /// Calls `work` between two steps, also during a pause, and waits for it. Errors of `work`;
  /// closed after the end.
  Result<> between_steps(std::function<Result<>()> work);
  /// change_weights() for weights that have a version already, without waiting. With
  /// `between_sequences` no sequence gets tokens of two versions: none starts until the running
  /// ones have ended, of which each has a deadline. Weights that still wait then are replaced by
  /// newer ones. A failure of `change` is logged.
  void adopt_weights(std::uint64_t version, std::function<Result<>()> change,
                     bool between_sequences);

 private:
  class Loop;
  explicit GenerationService(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::engine::serving
