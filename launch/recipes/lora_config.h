// The section `lora` of a run file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::launch {

struct LoraSection {
  std::int64_t rank = 0;  ///< 0: the whole model is trained, unless `adapter` names one
  double alpha = 0;       ///< 0: twice the rank
  double dropout = 0;
  std::vector<std::string> targets{"all-linear"};
  std::vector<std::string> exclude;
  bool rslora = false;
  bool dora = false;
  std::map<std::string, std::string> rank_pattern, alpha_pattern;  ///< module to number
  std::string adapter;  ///< an adapter's directory to begin with; rank, alpha, targets are its own
  std::int64_t seed = 0;
};

}  // namespace troupe::launch
