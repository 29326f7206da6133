#include "algorithms/orpo.h"

#include "engine/base/text/text.h"

namespace troupe::algorithms {

static_assert(RowMethod<OrpoConfig>);

std::string OrpoConfig::formula() const {
  return cat("L = mean over the chosen answers' tokens",
             nll_on_prompt ? ", their prompts' too," : "", " of - log p  +  mean over pairs of - ",
             to_text(loss.beta),
             " log sigmoid(log odds(y_w) - log odds(y_l))\nlog odds(y) = x - log(1 - e^x),  x = "
             "mean over the answer's tokens of ",
             "log p\n");
}

PairTraining OrpoConfig::training() const {
  return {.loss = spec_of(loss), .held_out_loss = spec_of(loss), .nll_on_prompt = nll_on_prompt};
}

}  // namespace troupe::algorithms
