// The section `prm` of a run file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct PrmConfig {
  std::string kind = "token_class";  ///< token_class, placeholder
  std::string step_separator = "\n";
  bool train_on_last_step_only = false;
  std::int64_t classes = 2;
  double head_deviation = 0.02;  ///< of the fresh score head that a language model gets; 0: zeros
  std::string placeholder = "ки";
  std::vector<std::string> reward_tokens{"+", "-"};
  bool whole_vocabulary = false;
  bool float32 = false;  ///< log-softmax and slopes as TRL and torch round them
};

}  // namespace troupe::launch
