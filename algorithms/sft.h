// Supervised fine-tuning (sft.cpp).
#pragma once

#include "algorithms/held_out.h"
#include "algorithms/losses/sft_loss.h"
#include "algorithms/plan.h"
#include "algorithms/weight_sync.h"
#include "engine/data/loader/loader.h"

namespace troupe::algorithms {

struct SftConfig {
  SftLoss loss;
  bool mask_prompt = true;

  static void each_field(auto& self, auto&& field) {
    SftLoss::each_field(self.loss, field);
    field("mask_prompt", self.mask_prompt,
          "train on the assistant's tokens only; false: on all tokens");
  }
};

/// `held_out`: rows whose loss and metrics are written as eval/... where a look is due.
Task<void> sft(Cluster& c, engine::data::Loader<engine::data::SftExample>& data, Plan plan,
               SftLoss loss, HeldOut held_out);

}  // namespace troupe::algorithms
