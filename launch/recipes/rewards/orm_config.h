// The section `orm` of a run file.
#pragma once

#include <string>

namespace troupe::launch {

struct OrmConfig {
  std::string loss = "bradley_terry";  ///< the names of algorithms::OrmLossKind
  double center_rewards_coefficient = 0;
  double head_deviation = 0.02;  ///< of the fresh score head that a language model gets; 0: zeros
};

}  // namespace troupe::launch
