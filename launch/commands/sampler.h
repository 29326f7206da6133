// Sampler: a model and its generator for one prompt at a time, as the commands generate and chat
// use them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate/generation_config.h"
#include "engine/generate/generator.h"
#include "launch/commands/model.h"

namespace troupe::launch {

class Sampler {
 public:
  /// Loads the model, and its generation_config.json or the file that the options name instead.
  /// Throws Failure.
  Sampler(const GenerateOptions& options, engine::generate::TokenCallback on_token);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  Model& model() { return model_; }
  /// What the file sets, and over it what the command line does. max_new_tokens of 0: draw()
  /// decides by the prompt.
  const engine::generate::SamplingParams& settings() const { return settings_; }
  /// Continuations of one prompt, in order, as many as the settings want returned; sample ids count
  /// from first_sample. With beams, the best ones found.
  Result<std::vector<engine::generate::Generation>> draw(const std::vector<std::int32_t>& prompt,
                                                         engine::generate::SamplingParams sampling,
                                                         std::uint64_t first_sample = 0);

 private:
  /// What `ids` add to the text of the prompt (a tokenizer may write a space between them that
  /// neither has alone); empty when the folder has no tokenizer.
  std::string text_after_prompt(std::span<const std::int32_t> ids);

  Model model_;
  engine::generate::GenerationConfig defaults_;
  engine::generate::SamplingParams settings_;
  engine::generate::GeneratorConfig config_;
  std::vector<std::int32_t> prompt_;
  std::uint64_t next_id_ = 0;
  std::optional<engine::generate::Generator>
      generator_;  // when the first sample without beams is drawn
};

/// {"ids", "text", "logprobs", "finish_reason"}, "top_logprobs" where asked for, and "score" of a
/// beam. "text" is null without a tokenizer.
Json json_of(const engine::generate::Generation& drawn, bool has_text, bool has_score);

}  // namespace troupe::launch
