#include "algorithms/catalog.h"

#include "algorithms/methods.h"

namespace troupe::algorithms {

const engine::loss::LossTable& losses() {
  static const engine::loss::LossTable table = [] {
    engine::loss::LossTable all;
    const MethodSettings methods;
    MethodSettings::each_method(methods, [&]<Method M>(const M&) { M::Losses::add_to(all); });
    return all;
  }();
  return table;
}

}  // namespace troupe::algorithms
