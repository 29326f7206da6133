// The load-balancing loss of transformers (extra/moe_aux.json), one sequence at a time.
#include <gtest/gtest.h>

#include "algorithms/losses/sft_loss.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/golden.h"

namespace troupe::engine {
namespace {

TEST(GoldenExpertLosses, AreThoseOfTransformers) {
  SKIP_WITHOUT_GOLDEN("extra/moe_aux.json");
  const auto device = ops::make_cpu_device();
  const Json golden = value_or_throw(read_json(test::golden_folder() + "/extra/moe_aux.json"));
  const Json& models = *golden.find("models");
  ASSERT_EQ(models.object().size(), 3U);
  for (const auto& [name, of] : models.object()) {
    const double coefficient = of.find("coefficient")->number();
    train::ExpertOptions how{.losses = {train::BalanceLoss::all_layers},
                             .coefficients = {coefficient}};
    train::Trainer trainer(value_or_throw(checkpoint::load_decoder(
                               *device, test::golden_folder() + "/models/" + name, true)),
                           {.experts = how});
    const auto stored = value_or_throw(checkpoint::SafetensorsFile::open(
        test::golden_folder() + "/models/" + name + "/golden.safetensors"));
    std::size_t number = 0;
    for (const Json& sequence : of.find("sequences")->array()) {
      const std::string tokens = "tokens." + std::to_string(number++);
      std::vector<std::int32_t> ids(static_cast<std::size_t>(stored.find(tokens)->count()));
      value_or_throw(stored.read_i32(tokens, ids));
      data::Experience one;
      one.append(ids, std::vector<float>(ids.size(), 1.0F));
      one.count = static_cast<double>(ids.size()) - 1;
      const auto found = trainer.forward_backward(one, algorithms::SftLoss{});
      const double loss = found.report.find("moe/all_layers_loss").value_or(-1);
      EXPECT_NEAR(loss, sequence.find("aux_loss")->number(), 5e-6) << name;
      EXPECT_NEAR(found.loss + coefficient * loss, sequence.find("loss_with_aux")->number(), 5e-6)
          << name;
    }
  }
}

}  // namespace
}  // namespace troupe::engine
