// AnswerSettings: how answers are generated (generation_kwargs of lm_eval/models/utils.py,
// normalize_gen_kwargs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/evaluation/task_config.h"

namespace troupe::launch::evaluation {

struct AnswerSettings {
  std::vector<std::string> stops;
  std::int64_t new_tokens = 256;
  double temperature = 0;  ///< 0: greedy
  int beams = 1;
  double length_penalty = 1;
};

/// Errc::usage for settings that this program does not have.
Result<AnswerSettings> answer_settings(const TaskConfig& task);

}  // namespace troupe::launch::evaluation
