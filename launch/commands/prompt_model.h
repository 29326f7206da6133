// PromptModel: the model of the commands generate and chat with the defaults of its
// generation_config.json; in a group, this rank's part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/generate/generation_config.h"
#include "engine/generate/generator.h"
#include "launch/commands/generate.h"
#include "launch/model/model.h"

namespace troupe::launch::commands {

class PromptModel {
 public:
  /// Loads the model, and its generation_config.json or the file that replaces it. Throws Failure.
  explicit PromptModel(const GenerateOptions& options);
  PromptModel(const PromptModel&) = delete;
  PromptModel& operator=(const PromptModel&) = delete;

  model::Model& model() { return model_; }
  engine::models::Decoder& decoder() { return model_.decoder(); }
  /// Of the engine.
  const engine::generate::GeneratorConfig& config() const { return config_; }
  /// Settings of the file, overridden by the command line. max_new_tokens 0: complete() sets it
  /// from the length of the prompt.
  const engine::generate::SamplingParams& settings() const { return settings_; }
  /// The largest number of tokens of prompt and completion.
  std::size_t context() const;
  /// The setting, or its default.
  std::size_t max_new_tokens() const;

  /// The settings for a prompt of `length` tokens. Errc::bad_input, usage.
  Result<engine::generate::SamplingParams> complete(engine::generate::SamplingParams settings,
                                                    std::size_t length);
  /// Text that ids add to the prompt's (a tokenizer may put a space between them); empty without
  /// a tokenizer.
  engine::generate::TextDecoder text_after(const std::vector<std::int32_t>& prompt);

 private:
  model::Model model_;
  std::optional<model::Model> draft_;
  engine::generate::GenerationConfig defaults_;
  engine::generate::SamplingParams settings_;
  engine::generate::GeneratorConfig config_;
};

/// Applies every member of `object` that is a sampling setting (see
/// engine/generate/sampling_params_json.h); ignores others. A temperature or a filter turns greedy
/// off, unless `object` also has do_sample. Errc::bad_input.
Result<> read_settings(const Json& object, engine::generate::SamplingParams& sampling);

}  // namespace troupe::launch::commands
