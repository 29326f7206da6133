#include "algorithms/catalog.h"

#include "algorithms/losses/cpo_loss.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/kto_loss.h"
#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/orpo_loss.h"
#include "algorithms/losses/ppo_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "algorithms/losses/simpo_loss.h"
#include "algorithms/losses/value_loss.h"

namespace troupe::algorithms {

const engine::loss::LossTable& losses() {
  static const engine::loss::LossTable table{
      engine::loss::entry<PpoLoss>(),  engine::loss::entry<ValueLoss>(),
      engine::loss::entry<SftLoss>(),  engine::loss::entry<DpoLoss>(),
      engine::loss::entry<GrpoLoss>(), engine::loss::entry<OrmLoss>(),
      engine::loss::entry<PrmLoss>(),  engine::loss::entry<SimpoLoss>(),
      engine::loss::entry<CpoLoss>(),  engine::loss::entry<OrpoLoss>(),
      engine::loss::entry<KtoLoss>(),
  };
  return table;
}

}  // namespace troupe::algorithms
