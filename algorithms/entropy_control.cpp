#include "algorithms/entropy_control.h"

#include <algorithm>

namespace troupe::algorithms {

double EntropyControl::next(double coef, double entropy) const {
  if (!adaptive() || entropy == target) return coef;
  return std::clamp(coef + (entropy < target ? delta : -delta), least, most);
}

}  // namespace troupe::algorithms
