#include "engine/serving/generation_service.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/progress.h"
#include "engine/base/text.h"
#include "engine/base/thread_with_blocked_signals.h"
#include "engine/serving/fair_queue.h"
#include "engine/serving/report_end.h"

namespace troupe::engine::serving {

using Clock = std::chrono::steady_clock;
using generate::FinishReason;
using generate::Generation;

namespace {

/// Period of the check of all waiting deadlines.
constexpr std::chrono::milliseconds sweep_period{100};

struct Pending {
  std::uint64_t id = 0;
  Job job;
  Clock::time_point deadline;
};

/// New weights, or other work, that wait for the end of a step.
struct WeightsToCome {
  std::function<Result<>()> change;
  std::promise<Result<std::uint64_t>> done = {};
  std::optional<std::uint64_t> version = std::nullopt;  ///< absent: one above the version before
  bool between_sequences = false;
  bool are_weights = true;  ///< false: `change` changes none
};

Generation cancelled_before_start(const Pending& pending) {
  Generation out;
  out.id = pending.id;
  out.sample_id = pending.job.sample_id;
  out.prompt_tokens = static_cast<std::int32_t>(pending.job.request->prompt.size());
  out.finish = FinishReason::cancelled;
  return out;
}

}  // namespace

class GenerationService::Loop {
 public:
  Loop(generate::Generator generator, ServiceLimits limits, OtherRanks* others)
      : generator_(std::move(generator)), limits_(limits), others_(others) {}

  void start() {
    publish();
    thread_ = thread_with_blocked_signals("generation", [this] { run(); });
  }
  void stop();
  void on_token(const generate::TokenEvent& event);
  void on_prompt(std::uint64_t id, const generate::PromptScores& scores);
  void call(std::uint64_t id, const std::function<void()>& callback);
  Result<> check_request(const generate::Request& request) const {
    return generator_.check_request(request);
  }
  Result<std::vector<std::uint64_t>> submit(std::vector<Job> jobs, const std::string& client);
  void cancel(std::uint64_t id);
  ServiceCounters counters() const;
  void set_paused(bool paused);
  bool paused() const {
    const std::lock_guard lock(mutex_);
    return paused_;
  }
  void change_weights(std::unique_ptr<WeightsToCome> weights);

 private:
  void run();
  bool has_work() const;
  bool weights_hold_sequences() const;
  void change_weights_in_turn();
  void change_weights_now(WeightsToCome& weights);
  bool take_changes();
  void apply_changes();
  void begin(Pending pending);
  void cancel_active(std::uint64_t id);
  void step();
  bool drop_newest(const Error& why);
  void fail_job(std::uint64_t id, Error error);
  void fail_all(const Error& error);
  void end(std::uint64_t id, Result<Generation> result);
  void publish();

  generate::Generator generator_;
  ServiceLimits limits_;
  OtherRanks* others_;

  // Used by the thread of the loop only.
  std::map<std::uint64_t, Pending> active_;
  std::map<std::uint64_t, Error> errors_;  // of active jobs that end with an error
  std::vector<Pending> starting_, dropped_;
  std::vector<std::uint64_t> ending_;
  std::map<std::uint64_t, Error> failed_calls_;  // of jobs whose callback threw in a step
  std::vector<std::unique_ptr<WeightsToCome>> changing_;
  std::unique_ptr<WeightsToCome> held_;  // until the active sequences have ended
  Clock::time_point next_sweep_{};
  std::int64_t prompt_tokens_ = 0;
  StepTokens step_tokens_;
  std::uint64_t version_ = 0;
  bool steps_ = true;  // not paused

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  FairQueue<Pending> waiting_;
  std::vector<std::uint64_t> cancelled_;
  std::uint64_t next_id_ = 0;
  std::vector<std::unique_ptr<WeightsToCome>> weights_;
  bool stopping_ = false, paused_ = false;
  ServiceCounters counters_;

  std::thread thread_;
};

void GenerationService::Loop::set_paused(bool paused) {
  {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
  }
  changed_.notify_one();
}

void GenerationService::Loop::change_weights(std::unique_ptr<WeightsToCome> weights) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_)
      return weights->done.set_value(fail(Errc::closed, "the server is shutting down"));
    weights_.push_back(std::move(weights));
  }
  changed_.notify_one();
}

bool GenerationService::Loop::weights_hold_sequences() const {
  const auto holds = [](const auto& weights) { return weights->between_sequences; };
  return held_ != nullptr || std::ranges::any_of(changing_, holds);
}

void GenerationService::Loop::change_weights_in_turn() {
  for (auto& weights : std::exchange(changing_, {})) {
    if (weights->are_weights) held_ = nullptr;  // older ones
    if (weights->between_sequences)
      held_ = std::move(weights);
    else
      change_weights_now(*weights);
  }
  if (held_ && active_.empty()) change_weights_now(*std::exchange(held_, nullptr));
}

void GenerationService::Loop::change_weights_now(WeightsToCome& weights) {
  try {
    if (auto changed = weights.change(); !changed) {
      if (weights.version)
        log_error(cat("weights of version ", *weights.version, ": ", changed.error().what));
      return weights.done.set_value(fail(changed));
    }
    if (weights.are_weights) {
      version_ = weights.version.value_or(version_ + 1);
      generator_.weights_changed(version_);
    }
    weights.done.set_value(version_);
  } catch (const std::exception& problem) {
    log_error(cat("a change of the weights: ", problem.what()));
    weights.done.set_value(fail(Errc::internal, "the weights could not be changed"));
  }
}

void GenerationService::Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<std::vector<std::uint64_t>> GenerationService::Loop::submit(std::vector<Job> jobs,
                                                                   const std::string& client) {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(Errc::closed, "the server is shutting down");
    RETURN_IF_ERROR(waiting_.check_room(jobs.size(), limits_.max_waiting));
    const auto deadline = Clock::now() + limits_.deadline;
    for (Job& job : jobs) {
      ids.push_back(++next_id_);
      waiting_.push(client, {next_id_, std::move(job), deadline});
    }
  }
  changed_.notify_one();
  return ids;
}

void GenerationService::Loop::cancel(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  changed_.notify_one();
}

ServiceCounters GenerationService::Loop::counters() const {
  const std::lock_guard lock(mutex_);
  ServiceCounters out = counters_;
  out.waiting = static_cast<std::int64_t>(waiting_.size());
  return out;
}

void GenerationService::Loop::run() {
  while (take_changes()) {
    apply_changes();
    change_weights_in_turn();
    if (steps_ && !generator_.idle()) step();
    step_tokens_.count_up_to(generator_.stats().rows);
    publish();
  }
  const Error closed{Errc::closed, "the server is shutting down"};
  for (const auto& weights : std::exchange(changing_, {})) weights->done.set_value(fail(closed));
  fail_all(closed);
}

/// With the mutex held.
bool GenerationService::Loop::has_work() const {
  if (!weights_.empty() || !cancelled_.empty()) return true;
  return !paused_ && (!active_.empty() || !waiting_.empty());
}

/// Waits for work; false at the end.
bool GenerationService::Loop::take_changes() {
  std::unique_lock lock(mutex_);
  // Wakes up now and then for the deadlines of waiting jobs, though a free generator starts them at
  // once.
  while (!stopping_ && !has_work()) {
    changed_.wait_for(lock, std::chrono::seconds(1));
    if (paused_) break;
  }
  steps_ = !paused_;
  changing_ = std::exchange(weights_, {});
  if (stopping_) {
    dropped_ = waiting_.take_if([](const Pending&) { return true; });
    return false;
  }
  ending_ = std::exchange(cancelled_, {});
  const auto now = Clock::now();
  if (!ending_.empty() || now >= next_sweep_) {
    next_sweep_ = now + sweep_period;
    dropped_ = waiting_.take_if([&](const Pending& each) {
      return each.deadline <= now || std::ranges::find(ending_, each.id) != ending_.end();
    });
  }
  const auto most = static_cast<std::size_t>(limits_.max_batch);
  while (steps_ && !weights_hold_sequences() && active_.size() + starting_.size() < most &&
         !waiting_.empty())
    starting_.push_back(waiting_.pop());
  return true;
}

void GenerationService::Loop::apply_changes() {
  const auto now = Clock::now();
  for (Pending& each : std::exchange(dropped_, {})) {
    if (each.deadline <= now) {
      report_end(each.job, fail(Errc::timeout, cat("the request waited ", limits_.deadline.count(),
                                                   " s and was given up; the server is busy")));
    } else {
      report_end(each.job, cancelled_before_start(each));
    }
  }
  for (const std::uint64_t id : std::exchange(ending_, {})) cancel_active(id);
  for (const auto& [id, pending] : active_) {
    if (pending.deadline > now || errors_.contains(id)) continue;
    errors_[id] = {Errc::timeout, cat("the request took longer than ", limits_.deadline.count(),
                                      " s and was given up")};
    cancel_active(id);
  }
  for (Pending& each : std::exchange(starting_, {})) begin(std::move(each));
}

void GenerationService::Loop::begin(Pending pending) {
  const std::uint64_t id = pending.id;
  const Job& job = active_.emplace(id, std::move(pending)).first->second.job;
  if (job.on_start) call(id, job.on_start);
  try {
    generate::Request request = *job.request;
    request.id = id;
    request.sample_id = job.sample_id;
    prompt_tokens_ += std::ssize(request.prompt);
    if (others_ != nullptr) others_->submit(request, job.source);
    if (auto accepted = generator_.submit(std::move(request)); !accepted) end(id, fail(accepted));
  } catch (const std::bad_alloc& problem) {
    if (others_ != nullptr) others_->abort(problem.what());
    end(id, fail(error_of(problem)));
  }
}

void GenerationService::Loop::cancel_active(std::uint64_t id) {
  if (others_ != nullptr) others_->cancel(id);
  generator_.cancel(id);
}

void GenerationService::Loop::step() {
  const progress::Operation watched("a decoding step");
  try {
    if (others_ != nullptr) others_->step(generator_.stats().sampled);
    std::vector<Generation> ended = generator_.step();
    for (auto& [id, error] : std::exchange(failed_calls_, {})) fail_job(id, std::move(error));
    for (Generation& done : ended) {
      const std::uint64_t id = done.id;
      end(id, std::move(done));
    }
  } catch (const generate::RequestFailure& failure) {
    log_error(failure.what());
    fail_job(failure.id(), failure.error());
  } catch (const std::exception& problem) {
    const Error why = error_of(problem);
    log_error(cat("a decoding step: ", why.what));
    if (drop_newest(why)) return;
    if (others_ != nullptr) others_->abort(problem.what());
    fail_all({Errc::internal, "a decoding step failed; see the server's log"});
  }
}

/// After a step that lacked memory and can be repeated: ends the job that came last, because the
/// others had room before. Other ranks cannot repeat a step that one of them has not computed.
bool GenerationService::Loop::drop_newest(const Error& why) {
  if (why.code != Errc::full || others_ != nullptr || !generator_.can_repeat_step()) return false;
  for (auto newest = active_.rbegin(); newest != active_.rend(); ++newest) {
    if (errors_.contains(newest->first)) continue;
    fail_job(newest->first, {Errc::full, cat("the server: ", why.what)});
    return true;
  }
  return false;
}

/// The job ends with the next step(), or with this one where it has ended.
void GenerationService::Loop::fail_job(std::uint64_t id, Error error) {
  if (!active_.contains(id)) return;
  errors_[id] = std::move(error);
  cancel_active(id);
}

void GenerationService::Loop::fail_all(const Error& error) {
  for (Pending& each : std::exchange(dropped_, {})) report_end(each.job, fail(error));
  for (Pending& each : std::exchange(starting_, {})) report_end(each.job, fail(error));
  for (const auto& [id, pending] : active_) cancel_active(id);
  while (!active_.empty()) end(active_.begin()->first, fail(error));
}

void GenerationService::Loop::end(std::uint64_t id, Result<Generation> result) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;  // fail_all() has ended it
  const Pending done = std::move(found->second);
  active_.erase(found);
  if (const auto error = errors_.find(id); error != errors_.end()) {
    result = fail(std::move(error->second));
    errors_.erase(error);
  }
  publish();  // before on_end: who hears of the end sees the pages free
  report_end(done.job, std::move(result));
}

void GenerationService::Loop::on_token(const generate::TokenEvent& event) {
  if (const auto found = active_.find(event.id); found != active_.end())
    if (found->second.job.on_token) call(event.id, [&] { found->second.job.on_token(event); });
}

void GenerationService::Loop::on_prompt(std::uint64_t id, const generate::PromptScores& scores) {
  if (const auto found = active_.find(id); found != active_.end())
    if (found->second.job.on_prompt) call(id, [&] { found->second.job.on_prompt(scores); });
}

/// An exception of a job's callback ends this job and not the step, which serves all.
void GenerationService::Loop::call(std::uint64_t id, const std::function<void()>& callback) {
  if (auto error = contained(callback)) failed_calls_.insert_or_assign(id, std::move(*error));
}

void GenerationService::Loop::publish() {
  const generate::GeneratorStats& stats = generator_.stats();
  const std::lock_guard lock(mutex_);
  counters_ = {.running = static_cast<std::int64_t>(active_.size()),
               .pages = generator_.pages(),
               .free_pages = generator_.free_pages(),
               .idle_pages = generator_.idle_pages(),
               .prefix_queries = stats.prefix_queries,
               .prefix_hits = stats.prefix_hits,
               .drafted = stats.drafted,
               .accepted = stats.accepted,
               .prompt_tokens = prompt_tokens_,
               .generated_tokens = stats.sampled,
               .preemptions = stats.preemptions,
               .steps = stats.steps,
               .version = version_,
               .step_tokens = step_tokens_};
}

GenerationService::GenerationService(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {
}

GenerationService::~GenerationService() {
  stop();
}

void GenerationService::stop() {
  loop_->stop();
}

Result<std::unique_ptr<GenerationService>> GenerationService::start(
    models::Decoder& decoder, generate::GeneratorConfig config, ServiceLimits limits,
    OtherRanks* others) {
  config.max_sequences = limits.max_batch;
  config.stop = {};
  const auto target = std::make_shared<Loop*>(nullptr);  // the generator exists before the loop
  config.on_token = [target](const generate::TokenEvent& event) { (*target)->on_token(event); };
  config.on_prompt = [target](std::uint64_t id, const generate::PromptScores& scores) {
    (*target)->on_prompt(id, scores);
  };
  auto generator = generate::Generator::create(decoder, std::move(config));
  RETURN_IF_ERROR(generator);
  auto loop = std::make_unique<Loop>(std::move(*generator), limits, others);
  *target = loop.get();
  loop->start();
  return std::unique_ptr<GenerationService>(new GenerationService(std::move(loop)));
}

Result<> GenerationService::check_request(const generate::Request& request) const {
  return loop_->check_request(request);
}

Result<std::vector<std::uint64_t>> GenerationService::submit(std::vector<Job> jobs,
                                                             const std::string& client) {
  return loop_->submit(std::move(jobs), client);
}

void GenerationService::cancel(std::uint64_t id) {
  loop_->cancel(id);
}

ServiceCounters GenerationService::counters() const {
  return loop_->counters();
}

void GenerationService::pause() {
  loop_->set_paused(true);
}

void GenerationService::resume() {
  loop_->set_paused(false);
}

bool GenerationService::paused() const {
  return loop_->paused();
}

Result<std::uint64_t> GenerationService::change_weights(std::function<Result<>()> change) {
  auto weights = std::make_unique<WeightsToCome>(WeightsToCome{.change = std::move(change)});
  auto done = weights->done.get_future();
  loop_->change_weights(std::move(weights));
  return done.get();
}

Result<> GenerationService::between_steps(std::function<Result<>()> work) {
  auto waiting = std::make_unique<WeightsToCome>(
      WeightsToCome{.change = std::move(work), .are_weights = false});
  auto done = waiting->done.get_future();
  loop_->change_weights(std::move(waiting));
  const auto result = done.get();
  RETURN_IF_ERROR(result);
  return {};
}

void GenerationService::adopt_weights(std::uint64_t version, std::function<Result<>()> change,
                                      bool between_sequences) {
  loop_->change_weights(std::make_unique<WeightsToCome>(WeightsToCome{
      .change = std::move(change), .version = version, .between_sequences = between_sequences}));
}

}  // namespace troupe::engine::serving
