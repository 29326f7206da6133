// The methods of troupe: a new one is one member and one line here.
#pragma once

#include <type_traits>

#include "algorithms/cpo.h"
#include "algorithms/dpo.h"
#include "algorithms/grpo.h"
#include "algorithms/kto.h"
#include "algorithms/orpo.h"
#include "algorithms/ppo.h"
#include "algorithms/pretrain.h"
#include "algorithms/reward_model.h"
#include "algorithms/sft.h"
#include "algorithms/simpo.h"

namespace troupe::algorithms {

struct MethodSettings {
  PretrainConfig pretrain;
  SftConfig sft;
  DpoConfig dpo;
  SimpoConfig simpo;
  CpoConfig cpo;
  OrpoConfig orpo;
  KtoConfig kto;
  OrmConfig orm;
  PrmConfig prm;
  PpoConfig ppo;
  GrpoConfig grpo;

  /// In the order of the reference page.
  static void each_method(auto& self, auto&& method) {
    method(self.pretrain);
    method(self.sft);
    method(self.dpo);
    method(self.simpo);
    method(self.cpo);
    method(self.orpo);
    method(self.kto);
    method(self.orm);
    method(self.prm);
    method(self.ppo);
    method(self.grpo);
  }
};

template <Method M>
const M& settings_of(const MethodSettings& all) {
  const M* found = nullptr;
  MethodSettings::each_method(all, [&](const auto& settings) {
    if constexpr (std::is_same_v<M, std::remove_cvref_t<decltype(settings)>>) found = &settings;
  });
  return *found;
}

}  // namespace troupe::algorithms
