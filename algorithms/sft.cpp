#include "algorithms/sft.h"

#include "algorithms/row_training.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

static_assert(RowMethod<SftConfig>);

std::string SftConfig::formula() const {
  return cat("L = - sum over trained tokens t of ",
             loss.kind == SftLossKind::dft ? "sg(p(t)) " : "",
             "log p(t | the tokens before it)  /  trained tokens of the batch\n", "trained: ",
             mask_prompt ? "the answers (every assistant turn), not the prompts"
                         : "every token but the first of each row");
}

engine::data::Experience batch_of(const SftConfig&,
                                  const engine::data::Batch<engine::data::SftExample>& rows) {
  return engine::data::to_experience(rows);
}

Task<void> train(Cluster& c, engine::data::Loader<engine::data::SftExample>& data,
                 TrainingPlan plan, const SftConfig& settings, HeldOut held_out) {
  return train_on_rows<engine::data::SftExample>(c, data, std::move(plan), settings.loss,
                                                 std::move(held_out), engine::data::to_experience);
}

}  // namespace troupe::algorithms
