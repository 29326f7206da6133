// PromptEngine: completions of prompts for the commands generate and chat, in the calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/serving/engine.h"
#include "launch/commands/generate.h"
#include "launch/commands/prompt_model.h"

namespace troupe::launch::commands {

/// A prompt with all of its settings: params.beams.returned samples, or the best beams.
struct PreparedPrompt {
  std::vector<std::int32_t> prompt;
  engine::generate::SamplingParams params;
  std::uint64_t first_id = 0, first_sample = 0;

  /// Requests, which have ids from first_id.
  std::uint64_t samples() const {
    return params.beams.count > 1 ? 1 : static_cast<std::uint64_t>(params.beams.returned);
  }
};

class PromptEngine {
 public:
  using Generations = Result<std::vector<engine::generate::Generation>>;

  /// Loads the model. With options.group every rank loads its part, and those after the first
  /// follow this engine. `stop` is asked before every step of generate(), and of a search for
  /// beams: true ends the completion. Throws Failure.
  explicit PromptEngine(const GenerateOptions& options, std::function<bool()> stop = {});
  PromptEngine(const PromptEngine&) = delete;
  PromptEngine& operator=(const PromptEngine&) = delete;

  PromptModel& prompts() { return *model_; }
  model::Model& model() { return model_->model(); }

  /// Completions of one prompt: num_return_sequences samples with ids from first_sample, or the
  /// best beams.
  Generations generate(const std::vector<std::int32_t>& prompt,
                       engine::generate::SamplingParams settings, std::uint64_t first_sample = 0,
                       const engine::generate::TokenCallback& on_token = {});

  /// The checks of the settings; requests have ids in the order of these calls.
  Result<PreparedPrompt> prepare(const std::vector<std::int32_t>& prompt,
                                 engine::generate::SamplingParams settings,
                                 std::uint64_t first_sample = 0);
  /// Starts a prompt. `on_end` receives its completions in one of the next steps, or the first
  /// error; at once where it is refused or has beams. Throws what the engine throws.
  void submit(const PreparedPrompt& prepared, std::function<void(Generations)> on_end,
              const engine::generate::TokenCallback& on_token = {});
  /// Throws what Engine::step() throws, but for failures of one request, which end its prompt.
  void step();
  /// Sequences that have not ended.
  std::size_t active() const { return engine_->active(); }
  /// Ends all prompts without on_end.
  void discard_all() { engine_->discard_all(); }

 private:
  std::optional<PromptModel> model_;
  std::function<bool()> stop_;
  std::uint64_t next_id_ = 0;
  std::unique_ptr<engine::serving::Engine> engine_;  // started with the first sample
};

}  // namespace troupe::launch::commands
