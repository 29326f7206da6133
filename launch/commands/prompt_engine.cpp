#include "launch/commands/prompt_engine.h"

#include <utility>

#include "actors/group/replicated_engine.h"
#include "engine/base/threads/progress.h"
#include "launch/commands/rank_group.h"

namespace troupe::launch::commands {

using engine::generate::Generation;
using engine::generate::Request;
using engine::generate::SamplingParams;
using engine::serving::Engine;

PromptEngine::PromptEngine(const GenerateOptions& options, std::function<bool()> stop)
    : stop_(std::move(stop)) {
  if (options.group == nullptr) {
    model_.emplace(options);
    engine_ = std::make_unique<Engine>(model_->decoder(), model_->config());
    return;
  }
  const auto& channel = options.group->channel();
  channel->send({"engine", "load", {}});
  channel->run_on_all_ranks("loading the model", [&] { model_.emplace(options); });
  engine_ = std::make_unique<actors::group::ReplicatedEngine>(
      model_->decoder(), model_->config(), channel, options.group->mesh().world());
}

PromptEngine::Generations PromptEngine::generate(const std::vector<std::int32_t>& prompt,
                                                 SamplingParams settings,
                                                 std::uint64_t first_sample,
                                                 const engine::generate::TokenCallback& on_token) {
  const auto prepared = prepare(prompt, std::move(settings), first_sample);
  RETURN_IF_ERROR(prepared);
  std::optional<Generations> found;
  try {
    submit(
        *prepared, [&found](Generations all) { found = std::move(all); }, on_token);
    while (!found) {
      if (stop_ && stop_())
        for (std::uint64_t k = 0; k < prepared->samples(); ++k)
          engine_->cancel(prepared->first_id + k);
      step();
    }
  } catch (...) {
    engine_->discard_all();
    throw;
  }
  return std::move(*found);
}

Result<PreparedPrompt> PromptEngine::prepare(const std::vector<std::int32_t>& prompt,
                                             SamplingParams settings, std::uint64_t first_sample) {
  auto params = model_->complete(std::move(settings), prompt.size());
  RETURN_IF_ERROR(params);
  PreparedPrompt out{.prompt = prompt,
                     .params = std::move(*params),
                     .first_id = next_id_,
                     .first_sample = first_sample};
  next_id_ += out.samples();
  return out;
}

namespace {

/// The samples of a prompt that have ended.
struct Ended {
  std::vector<Generation> samples;
  std::size_t left = 0;
  std::optional<Error> failed;
  std::function<void(PromptEngine::Generations)> on_end;

  void report() {
    if (failed)
      on_end(fail(*failed));
    else
      on_end(std::move(samples));
  }
};

}  // namespace

void PromptEngine::submit(const PreparedPrompt& prepared, std::function<void(Generations)> on_end,
                          const engine::generate::TokenCallback& on_token) {
  const auto request =
      std::make_shared<const Request>(Request{.id = prepared.first_id,
                                              .prompt = prepared.prompt,
                                              .params = prepared.params,
                                              .decode = model_->text_after(prepared.prompt)});
  if (prepared.params.beams.count > 1) return on_end(engine_->beam_search(*request, stop_));
  if (!engine_->started()) value_or_throw(engine_->start());  // beams need no cache here
  const std::uint64_t samples = prepared.samples(), first = prepared.first_id;
  const auto ended = std::make_shared<Ended>();
  ended->samples.resize(samples);
  ended->left = samples;
  ended->on_end = std::move(on_end);
  for (std::uint64_t k = 0; k < samples; ++k) {
    engine::serving::Job job{.request = request, .sample_id = prepared.first_sample + k};
    job.on_token = on_token;
    job.on_end = [this, ended, k, first, samples](Result<Generation> one) {
      if (ended->left == 0) return ended->on_end(fail(one));  // which has thrown
      --ended->left;
      if (one) {
        ended->samples[k] = std::move(*one);
      } else if (!ended->failed) {  // the first error is that of the prompt
        ended->failed = std::move(one.error());
        for (std::uint64_t other = 0; other < samples; ++other) engine_->cancel(first + other);
      }
      if (ended->left == 0) ended->report();
    };
    engine_->submit(first + k, std::move(job));
    if (!ended->failed) continue;
    ended->left -= samples - 1 - k;  // those that were not submitted
    if (k + 1 < samples && ended->left == 0) ended->report();
    return;
  }
}

void PromptEngine::step() {
  const progress::Operation watched("a decoding step");
  try {
    engine_->step();
  } catch (const engine::generate::RequestFailure& failure) {
    engine_->fail_job(failure.id(), failure.error());
  }
}

}  // namespace troupe::launch::commands
