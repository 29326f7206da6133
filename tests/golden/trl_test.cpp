// TRL's supervised fine-tuning, replayed (curve.h).
#include <numeric>

#include "algorithms/losses/sft_loss.h"
#include "tests/golden/curve.h"

namespace troupe::algorithms {
namespace {

class GoldenSft : public GoldenCurve {
 protected:
  GoldenSft() : GoldenCurve("trl/sft.json") {}
};

TEST_P(GoldenSft, EveryStepIsReproduced) {
  const auto& type = curve_->settings().find("loss_type")->string();
  const SftLoss loss{.kind = type == "dft" ? SftLossKind::dft : SftLossKind::nll};
  replay(loss, [](const Json& given) {
    Experience b;
    for (std::size_t n = 0; n < given.find("input_ids")->array().size(); ++n) {
      std::vector<float> mask;
      for (const auto label : numbers<std::int32_t>(given.find("labels")->array()[n]))
        mask.push_back(label == -100 ? 0.0f : 1.0f);
      b.append(numbers<std::int32_t>(given.find("input_ids")->array()[n]), mask);
    }
    b.count = std::accumulate(b.mask.begin(), b.mask.end(), 0.0);
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenSft,
                         ::testing::Values(Run{"CompletionOnly", "completion_only"},
                                           Run{"FullSequence", "full_sequence"}, Run{"Dft", "dft"}),
                         title_of);

TEST(GoldenTrl, SomeFilesAreThere) {
  test::expect_some_golden({"trl/sft.json", "trl/grpo.json"});
}

}  // namespace
}  // namespace troupe::algorithms
