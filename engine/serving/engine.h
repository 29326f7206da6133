// Engine: the owner and the only driver of a Generator: sequences with callbacks, which join and
// leave between two steps.
//
// Tokens are those that the Generator computes for the request alone (generator.h). Every submitted
// job ends with exactly one call of on_end: completion, cancellation, or a failure. A server steps
// it in a GenerationThread, a command in its own thread, a rollout in its actor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/generate/generator.h"
#include "engine/serving/pooling_batch.h"

namespace troupe::engine::serving {

/// From what another rank makes those members of a Request that are functions or objects.
struct RequestSource {
  bool skips_special = true;  ///< Request::decode leaves out special tokens
  std::shared_ptr<const std::string> constraint = nullptr;  ///< Request::constraint
};

/// One sequence. The callbacks run in the thread of the engine and delay its next step: they hand
/// the event over and return. They may call cancel(). What they throw ends this sequence with the
/// error of the exception.
struct Job {
  /// Shared by the sequences of a prompt. The id is that of submit(), sample_id that of the job.
  std::shared_ptr<const generate::Request> request;
  std::uint64_t sample_id = 0;     ///< Request::sample_id
  RequestSource source;            ///< of `request`, for other ranks
  std::function<void()> on_start;  ///< it waits no longer
  /// The scores of the prompt, where the request asks for them, before its first token.
  std::function<void(const generate::PromptScores&)> on_prompt;
  std::function<void(const generate::TokenEvent&)> on_token;
  /// The finished sequence (finish: cancelled after cancel()), the error of Generator::submit() or
  /// of fail_job(). Called again, with the error, if it throws.
  std::function<void(Result<generate::Generation>)> on_end;
};

struct NewWeights {
  /// Writes them into the decoder. After an error it must have written nothing.
  std::function<Result<>()> write;
  std::optional<std::uint64_t> version = std::nullopt;  ///< absent: one above the version before
  generate::WeightChange effect = {};                   ///< on unfinished sequences
  /// No sequence gets tokens of two versions: they wait until all have ended, and newer ones
  /// replace them. No sequence may start meanwhile (Engine::may_start()).
  bool between_sequences = false;
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

class Engine {
 public:
  /// `decoder` must outlive the engine, and no one else may use it. `config`: on_token is called
  /// before that of the job and must not throw; on_prompt and stop are replaced.
  Engine(models::Decoder& decoder, generate::GeneratorConfig config)
      : decoder_(decoder), config_(std::move(config)) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes the generator and its cache, before the first job. Errc::usage for invalid sizes.
  Result<> start();
  bool started() const { return generator_.has_value(); }
  /// Generator::check_request(); may be called from any thread.
  Result<> check_request(const generate::Request& request) const {
    return generator_->check_request(request);
  }

  // From here on, every function is called from one thread.

  /// `id`: chosen by the caller; unique among unfinished jobs. A job that is refused ends at once.
  void submit(std::uint64_t id, Job job);
  /// The job ends in the next step(). False for one that is not unfinished.
  virtual bool cancel(std::uint64_t id);
  /// The same with an error, unless it has one already.
  void fail_job(std::uint64_t id, Error error);
  /// Ends every job at once. The result of a function for its id, or the error.
  void fail_all(const Error& error);
  /// After a step that lacked memory and can be repeated: ends the job that came last, because the
  /// others had room before. False where the step cannot be repeated.
  bool fail_newest(const Error& error);
  /// Ends every job without its callbacks.
  void discard_all();
  /// Generator::step(); calls the callbacks. Throws what it throws: after a RequestFailure,
  /// fail_job() the request and continue.
  virtual void step();
  /// Whether step() has nothing to do.
  bool idle() const { return (!started() || generator_->idle()) && active_.empty() && !held_; }
  std::size_t active() const { return active_.size(); }

  /// Uses other weights at once, or after the running sequences; unfinished sequences continue with
  /// them. Errors of `write`.
  Result<> set_weights(NewWeights weights);
  /// False while new weights wait for the end of all sequences.
  bool may_start() const { return !held_; }
  std::uint64_t version() const { return version_; }
  ServiceCounters counters() const;

  /// generate::beam_search() with Request::decode, which needs no generator. `stop`:
  /// GeneratorConfig::stop.
  virtual Result<std::vector<generate::Generation>> beam_search(const generate::Request& request,
                                                                std::function<bool()> stop);
  /// pooled_values() of the decoder, which needs no generator.
  virtual std::vector<float> pool(const PoolingBatch& batch) {
    return pooled_values(decoder_, config_.precision, batch);
  }

 protected:
  /// Passes the request to the generator.
  virtual Result<> accept(generate::Request request, const RequestSource& source);
  virtual bool can_repeat_step() const { return generator_->can_repeat_step(); }

 private:
  Result<> use(const NewWeights& weights);
  void call(std::uint64_t id, const std::function<void()>& callback);
  void end(std::uint64_t id, Result<generate::Generation> result);

  models::Decoder& decoder_;
  generate::GeneratorConfig config_;
  std::optional<generate::Generator> generator_;
  std::map<std::uint64_t, Job> active_;
  std::map<std::uint64_t, Error> errors_;        // of active jobs that end with an error
  std::map<std::uint64_t, Error> failed_calls_;  // of jobs whose callback threw in a step
  std::optional<NewWeights> held_;               // until the active sequences have ended
  std::int64_t prompt_tokens_ = 0;
  StepTokens step_tokens_;
  std::uint64_t version_ = 0;
};

}  // namespace troupe::engine::serving
