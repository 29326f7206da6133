// Supervised fine-tuning (sft.cpp).
#pragma once

#include "algorithms/losses/sft_loss.h"
#include "algorithms/plan.h"
#include "engine/data/loader.h"

namespace troupe::algorithms {

Task<void> sft(Cluster& c, engine::data::Loader<engine::data::SftExample>& data, Plan plan, SftLoss loss);

}  // namespace troupe::algorithms
