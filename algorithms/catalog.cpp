#include "algorithms/catalog.h"

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"

namespace troupe::algorithms {

const engine::loss::LossTable& losses() {
  static const engine::loss::LossTable table{
      engine::loss::entry<SftLoss>(),
      engine::loss::entry<DpoLoss>(),
      engine::loss::entry<GrpoLoss>(),
  };
  return table;
}

}  // namespace troupe::algorithms
