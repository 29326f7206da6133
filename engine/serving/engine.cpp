#include "engine/serving/engine.h"

#include <new>
#include <utility>

#include "engine/generate/beam_search.h"
#include "engine/serving/report_end.h"

namespace troupe::engine::serving {

using generate::Generation;

Result<> Engine::start() {
  generate::GeneratorConfig config = config_;
  config.stop = {};
  config.on_token = [this](const generate::TokenEvent& event) {
    if (config_.on_token) config_.on_token(event);
    if (const auto found = active_.find(event.id); found != active_.end())
      if (found->second.on_token) call(event.id, [&] { found->second.on_token(event); });
  };
  config.on_prompt = [this](std::uint64_t id, const generate::PromptScores& scores) {
    if (const auto found = active_.find(id); found != active_.end())
      if (found->second.on_prompt) call(id, [&] { found->second.on_prompt(scores); });
  };
  auto generator = generate::Generator::create(decoder_, std::move(config));
  RETURN_IF_ERROR(generator);
  generator_.emplace(std::move(*generator));
  return {};
}

void Engine::submit(std::uint64_t id, Job job) {
  const Job& kept = active_.emplace(id, std::move(job)).first->second;
  if (kept.on_start) call(id, kept.on_start);
  try {
    generate::Request request = *kept.request;
    request.id = id;
    request.sample_id = kept.sample_id;
    prompt_tokens_ += std::ssize(request.prompt);
    if (auto accepted = accept(std::move(request), kept.source); !accepted) end(id, fail(accepted));
  } catch (const std::bad_alloc& problem) {
    end(id, fail(error_of(problem)));
  }
}

Result<> Engine::accept(generate::Request request, const RequestSource&) {
  return generator_->submit(std::move(request));
}

bool Engine::cancel(std::uint64_t id) {
  return generator_->cancel(id);
}

void Engine::fail_job(std::uint64_t id, Error error) {
  if (!active_.contains(id) || errors_.contains(id)) return;
  errors_[id] = std::move(error);
  cancel(id);
}

void Engine::fail_all(const Error& error) {
  for (const auto& [id, job] : active_) cancel(id);
  generator_->discard_all();
  while (!active_.empty()) end(active_.begin()->first, fail(error));
}

bool Engine::fail_newest(const Error& error) {
  if (!can_repeat_step()) return false;
  for (auto newest = active_.rbegin(); newest != active_.rend(); ++newest) {
    if (errors_.contains(newest->first)) continue;
    fail_job(newest->first, error);
    return true;
  }
  return false;
}

void Engine::discard_all() {
  if (!started()) return;  // start() has failed
  for (const auto& [id, job] : active_) cancel(id);
  active_.clear();
  errors_.clear();
  failed_calls_.clear();
  generator_->discard_all();
}

void Engine::step() {
  if (held_ && active_.empty()) static_cast<void>(use(*std::exchange(held_, std::nullopt)));
  std::vector<Generation> ended = generator_->step();
  // Before the ends are reported: who hears of one sees the counters of this step.
  step_tokens_.count_up_to(generator_->stats().rows);
  for (auto& [id, error] : std::exchange(failed_calls_, {})) fail_job(id, std::move(error));
  for (Generation& done : ended) {
    const std::uint64_t id = done.id;
    end(id, std::move(done));
  }
}

void Engine::end(std::uint64_t id, Result<Generation> result) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;  // fail_all() has ended it
  const Job done = std::move(found->second);
  active_.erase(found);
  if (const auto error = errors_.find(id); error != errors_.end()) {
    result = fail(std::move(error->second));
    errors_.erase(error);
  }
  report_end(done, std::move(result));
}

/// An exception of a job's callback ends this job and not the step, which serves all.
void Engine::call(std::uint64_t id, const std::function<void()>& callback) {
  if (auto error = contained(callback)) failed_calls_.insert_or_assign(id, std::move(*error));
}

Result<> Engine::set_weights(NewWeights weights) {
  held_.reset();  // older ones
  if (!weights.between_sequences || active_.empty()) return use(weights);
  held_ = std::move(weights);
  return {};
}

Result<> Engine::use(const NewWeights& weights) {
  RETURN_IF_ERROR(weights.write());
  version_ = weights.version.value_or(version_ + 1);
  generator_->weights_changed(version_, weights.effect);
  return {};
}

Result<std::vector<Generation>> Engine::beam_search(const generate::Request& request,
                                                    std::function<bool()> stop) {
  generate::GeneratorConfig config = config_;
  config.stop = std::move(stop);
  config.decode = request.decode;
  return generate::beam_search(decoder_, request, config);
}

ServiceCounters Engine::counters() const {
  const generate::GeneratorStats& stats = generator_->stats();
  return {.running = static_cast<std::int64_t>(active_.size()),
          .pages = generator_->pages(),
          .free_pages = generator_->free_pages(),
          .idle_pages = generator_->idle_pages(),
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

}  // namespace troupe::engine::serving
