// pretrain_gpt and posttrain_gpt: a run from a command line of Megatron.
#pragma once

#include <string>
#include <vector>

#include "launch/recipes/resolve.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

struct TrainingRun {
  recipes::Sources sources;
  std::string save;   ///< --save
  std::string model;  ///< the folder that the run starts from
  std::string algorithm;
  bool adapter = false;  ///< of LoRA
  int tensor = 1, pipeline = 1;
  int layers_per_virtual = 0;            ///< --num-layers-per-virtual-pipeline-stage; 0: none
  std::string layer_list, empty_places;  ///< as --num-layer-list and --noop-layers
  std::vector<std::string> notes;        ///< lines about values that no flag gives
};

/// The settings of a command line. `program`: pretrain_gpt or posttrain_gpt. Rank 0 may convert
/// --load (initial_model.h). Errc::usage and errors of reading the model.
Result<TrainingRun> training_run(const std::string& program, const CommandLine& line);

/// Makes the settings of a command line whose first word is the program, before its ranks start:
/// mpirun needs a minute to end when one of them fails. Errors as of training_run() and of
/// resolving the settings.
Result<> check_training(const std::vector<std::string>& words);

/// Trains, then rank 0 writes the last checkpoint in Megatron's layout into --save as well. Returns
/// the exit code; throws Failure.
int train_gpt(const std::string& program, const std::vector<std::string>& words);

}  // namespace troupe::launch::tools::megatron
