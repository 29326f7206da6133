// `troupe generate`: completions of prompts.
#pragma once

#include <optional>
#include <string>

#include "engine/base/json/json.h"
#include "engine/parallel/grid.h"
#include "launch/commands/task.h"
#include "launch/model/model.h"

namespace troupe::launch::commands {

class RankGroup;

struct GenerateOptions {
  model::ModelOptions model;
  engine::parallel::Grid grid;       ///< tp and pp: the ranks of mpirun that share the model
  std::int64_t timeout = 600;        ///< seconds that a rank waits for another
  const RankGroup* group = nullptr;  ///< these ranks; nullptr: this process alone
  std::string prompt;                ///< streams the completion; JSON lines without it
  bool has_prompt = false;
  std::optional<Task> task;  ///< generate: sets do_sample and num_beams
  /// Sampling settings by their names in transformers; override generation_config.json.
  Json settings = Json::Object{};
  std::string generation_config;  ///< replaces the model's file; "none": no file
  std::string chat_template;      ///< a template file or prompt type; "": the model's template
  std::string system;             ///< chat: the system message
  std::string weights = "full";   ///< full, int8
  std::int32_t lookup = 0;        ///< draft tokens of prompt lookup; 0: none
  std::string draft;              ///< folder of a draft model; "": none
  std::int32_t draft_tokens = 4;  ///< of the draft model
  /// Sequences generated at the same time; 0: the samples of one prompt.
  std::int32_t max_sequences = 0;
};
/// Returns the exit code. Throws Failure.
int generate(const GenerateOptions& options);

}  // namespace troupe::launch::commands
