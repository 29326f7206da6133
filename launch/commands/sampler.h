// Sampler: a model and its generator for one prompt at a time, as the commands generate and chat use them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/generate/generator.h"
#include "launch/model.h"

namespace troupe::launch {

class Sampler {
 public:
  /// Loads the model. Throws Failure.
  Sampler(const GenerateOptions& options, engine::generate::TokenCallback on_token);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  Model& model() { return model_; }
  /// `samples` continuations of one prompt, in order; their sample ids count from first_sample.
  Result<std::vector<engine::generate::Generation>> draw(const std::vector<std::int32_t>& prompt,
                                                         const engine::generate::SamplingParams& sampling, std::int32_t samples,
                                                         std::uint64_t first_sample = 0);

 private:
  /// What `ids` add to the text of the prompt (a tokenizer may write a space between them that neither has alone); empty when the folder
  /// has no tokenizer.
  std::string text_after_prompt(std::span<const std::int32_t> ids);

  Model model_;
  std::vector<std::int32_t> prompt_;
  std::uint64_t next_id_ = 0;
  engine::generate::Generator generator_;
};

/// {"ids", "text", "logprobs", "finish_reason"} and, where asked for, "top_logprobs". "text" is null without a tokenizer.
Json json_of(const engine::generate::Generation& drawn, bool has_text);

}  // namespace troupe::launch
