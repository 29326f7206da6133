// Sampler: a model and its generator for one prompt at a time, for the commands generate and chat.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate/generation_config.h"
#include "engine/generate/generator.h"
#include "launch/commands/generate.h"
#include "launch/model/model.h"

namespace troupe::launch::commands {

class Sampler {
 public:
  /// Loads the model, and its generation_config.json or the file that replaces it. With
  /// options.group every rank has a Sampler, which loads this rank's part; rank 0 creates its own
  /// when it begins, and the others follow it (ModelGroup::follow).
  /// Throws Failure.
  /// `stop` is asked before every step: true ends the completion (GeneratorConfig::stop). In a
  /// group the answer of rank 0 counts.
  Sampler(const GenerateOptions& options, engine::generate::TokenCallback on_token,
          std::function<bool()> stop = {});
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  model::Model& model() { return model_; }
  /// Settings of the file, overridden by the command line. max_new_tokens 0: generate() sets it
  /// from the length of the prompt.
  const engine::generate::SamplingParams& settings() const { return settings_; }
  /// The largest number of tokens of prompt and completion.
  std::size_t context() const;
  /// The setting, or its default.
  std::size_t max_new_tokens() const;
  /// Completions of one prompt: num_return_sequences samples with ids from first_sample, or the
  /// best beams. In a group every rank returns them; rank 0's call starts those of the others.
  Result<std::vector<engine::generate::Generation>> generate(
      const std::vector<std::int32_t>& prompt, engine::generate::SamplingParams sampling,
      std::uint64_t first_sample = 0);

 private:
  using Generations = Result<std::vector<engine::generate::Generation>>;

  void stop_in_group(std::function<bool()> stop);
  Generations generate_in_group(const std::vector<std::int32_t>& prompt,
                                const engine::generate::SamplingParams& sampling,
                                std::uint64_t first_sample);
  Generations generate_here(const std::vector<std::int32_t>& prompt,
                            engine::generate::SamplingParams sampling, std::uint64_t first_sample);
  /// Text that `ids` add to the prompt's (a tokenizer may put a space between them); empty without
  /// a tokenizer.
  std::string text_after_prompt(std::span<const std::int32_t> ids);

  ModelGroup* group_;          // or nullptr
  std::exception_ptr thrown_;  // by the token callback of rank 0 of a group
  model::Model model_;
  std::optional<model::Model> draft_;
  engine::generate::GenerationConfig defaults_;
  engine::generate::SamplingParams settings_;
  engine::generate::GeneratorConfig config_;
  std::vector<std::int32_t> prompt_;
  std::uint64_t next_id_ = 0;
  std::optional<engine::generate::Generator> generator_;  // created for the first sample
};

/// Applies every member of `object` that is a sampling setting (see
/// engine/generate/sampling_params_json.h); ignores others. A temperature or a filter turns greedy
/// off, unless `object` also has do_sample. Errc::bad_input.
Result<> read_settings(const Json& object, engine::generate::SamplingParams& sampling);

/// {"ids", "text", "logprobs", "finish_reason"}, "top_logprobs" if requested, and "score" for a
/// beam. "text" is null without a tokenizer.
Json json_of(const engine::generate::Generation& generated, bool has_text, bool has_score);

}  // namespace troupe::launch::commands
