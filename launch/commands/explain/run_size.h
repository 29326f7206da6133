// The size of a run: its steps, and the tokens that its models process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/commands/explain/data_preview.h"
#include "launch/config/run_config.h"
#include "launch/recipes/pretrain.h"

namespace troupe::launch::commands {

/// Sequences of a run; of prompts with completions, whose lengths are not known before the run,
/// one for the shortest completions (a token each) and one for the longest.
struct TokenCounts {
  double tokens = 0;   ///< sum of the lengths
  double squares = 0;  ///< sum of the squared lengths
  double count = 0;    ///< of sequences
  std::int64_t longest = 0;
};

struct RunSize {
  std::int64_t steps = 0;  ///< 0: unknown
  double examples = 0;     ///< that the run reads, counted each time
  double epochs = 0;       ///< 0: unknown
  double samples = 0;      ///< completions; 0: the run samples none
  TokenCounts least, most;
  double passes = 1;   ///< over each sequence in training
  bool about = false;  ///< scaled from a part of the rows
};

/// Of rows. Errc::usage: settings that the run would refuse once it has read the data.
Result<RunSize> size_of_run(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec, const DataPreview& preview);
/// Of token files, in samples of `length` tokens. Errors as those of rows.
Result<RunSize> size_of_run(const config::RunConfig& config, std::int64_t length,
                            const std::vector<recipes::TokenFile>& files);

/// Lines for `troupe explain`: steps, tokens, warmup.
std::string size_text(const config::RunConfig& config, const RunSize& size);

}  // namespace troupe::launch::commands
