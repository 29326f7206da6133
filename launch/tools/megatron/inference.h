// inference: the tasks of MindSpeed-LLM's inference.py from its command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/commands/chat.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

struct InferenceRun {
  commands::ChatOptions options;   ///< settings: those of every task
  Json sampling = Json::Object{};  ///< settings of the tasks that sample
  Json beams = Json::Object{};     ///< num_beams of the beam searches, where it is given
  std::vector<commands::Task> tasks;
};

/// The tasks and settings of a command line, without a model. Errc::usage.
Result<InferenceRun> inference_run(const CommandLine& line);

/// How the model of --load is loaded.
struct LineModel {
  model::ModelOptions options;
  std::shared_ptr<const void> made;  ///< a folder that is removed with this, or nullptr
};
/// Compares the flags with the model; converts a checkpoint of Megatron. Errc::usage, not_found.
Result<LineModel> model_of(const CommandLine& line);

/// Runs the tasks on the model of --load: greedy and the following ones answer one prompt, chat
/// reads messages from stdin. A checkpoint of Megatron is converted into a temporary folder.
/// Returns the exit code; throws Failure.
int inference(const std::vector<std::string>& words);

}  // namespace troupe::launch::tools::megatron
