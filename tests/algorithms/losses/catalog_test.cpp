// Properties of every loss, over one table of all losses and their settings: gradients equal finite
// differences, a split into micro-batches changes nothing, untrained tokens may have any values,
// and a spec restores the loss.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "algorithms/losses/sft_loss.h"
#include "engine/base/text/text.h"
#include "tests/algorithms/losses/cases.h"
#include "tests/algorithms/losses/policy_family.h"
#include "tests/algorithms/losses/preference_family.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

std::vector<AnyLoss> catalog() {
  std::vector<AnyLoss> losses{SftLoss{}, SftLoss{.kind = SftLossKind::dft}};
  for (const auto& loss : preference_family()) losses.push_back(loss);
  for (const auto& loss : policy_family()) losses.push_back(loss);
  return losses;
}

struct CatalogCase {
  Experience batch = ragged_batch();
  std::vector<double> logp, entropy;
  CatalogCase() {
    batch.count = 5;
    batch.scale = 2;
    batch.label = {1, 0, 1, 1, 0, 0};
    for (std::size_t t = 0; t < batch.tokens.size(); ++t) {
      logp.push_back(static_cast<double>(batch.old_logp[t]) + draw(4, t, -0.6, 0.6));
      entropy.push_back(draw(5, t, 0, 3));
      batch.rollout_logp.push_back(batch.old_logp[t] + static_cast<float>(draw(6, t, -0.5, 0.5)));
    }
    for (std::uint64_t n = 0; n + 1 < batch.offsets.size(); ++n) {
      batch.version.push_back(n % 4);
      batch.sample_id.push_back(n);
    }
  }
};

bool field_is(const AnyLoss& loss, const char* key, std::string_view word) {
  const Json* field = loss.spec().fields.find(key);
  return field != nullptr && field->is_string() && field->string() == word;
}

// Losses with a weight that is a constant in the paper although it depends on logp: finite
// differences would include it. Their gradients are checked where they are defined (sft_loss_test,
// dpo_loss_test, surrogate_test, grpo_loss_test).
bool has_constants(const AnyLoss& loss) {
  const Json* weighting = loss.spec().fields.find("weighting");
  if (weighting != nullptr && weighting->boolean()) return true;
  return field_is(loss, "loss", "dft") || field_is(loss, "policy_loss", "cispo") ||
         field_is(loss, "policy_loss", "cispo_band") || field_is(loss, "policy_loss", "dppo_tv") ||
         field_is(loss, "policy_loss", "vespo") || field_is(loss, "ratio", "sequence_token") ||
         field_is(loss, "kl", "k1+") || field_is(loss, "kl", "k3+") ||
         field_is(loss, "proximal", "loglinear") || field_is(loss, "proximal", "linear");
}

std::string title(const AnyLoss& loss) {
  return cat(loss.spec().name, " ", loss.spec().fields.dump());
}

// The first update of a batch may take the log-probabilities of its own forward pass instead of
// recomputed ones: no bit depends on it.
TEST(EveryGrpoLoss, TakesItsOwnLogProbabilitiesForRecomputedOnes) {
  CatalogCase given;
  for (std::size_t t = 0; t < given.logp.size(); ++t) {
    const auto trained = static_cast<float>(given.logp[t]);
    given.logp[t] = static_cast<double>(trained);
    given.batch.old_logp[t] = given.batch.mask[t] != 0 ? trained : 0;  // as of protocol::Logprobs
  }
  CatalogCase own = given;
  own.batch.old_logp.clear();
  std::size_t compared = 0;
  for (const auto& loss : policy_family()) {
    if (loss.spec().name != GrpoLoss::name || !field_is(loss, "proximal", "given")) continue;
    ++compared;
    Report first, second;
    const auto a = slopes_of(loss, given.logp, given.entropy, given.batch, first);
    const auto b = slopes_of(loss, own.logp, own.entropy, own.batch, second);
    EXPECT_EQ(a.loss, b.loss) << title(loss);
    EXPECT_EQ(a.dlogp, b.dlogp) << title(loss);
    EXPECT_EQ(first.values(), second.values()) << title(loss);
  }
  EXPECT_GT(compared, 20u);
}

TEST(EveryLoss, HasTheGradientsOfFiniteDifferences) {
  const CatalogCase c;
  for (const auto& loss : catalog()) {
    if (has_constants(loss)) continue;
    Report report;
    const auto claimed = slopes_of(loss, c.logp, c.entropy, c.batch, report);
    const double h = 1e-6;
    for (std::size_t t = 0; t < c.logp.size(); ++t) {
      auto up = c.logp, down = c.logp;
      up[t] += h;
      down[t] -= h;
      const double by_logp = (slopes_of(loss, up, c.entropy, c.batch, report).loss -
                              slopes_of(loss, down, c.entropy, c.batch, report).loss) /
                             (2 * h);
      EXPECT_NEAR(claimed.dlogp[t], by_logp, 1e-7 * (1 + std::abs(by_logp)))
          << title(loss) << " token " << t;
      up = c.entropy;
      down = c.entropy;
      up[t] += h;
      down[t] -= h;
      const double by_entropy = (slopes_of(loss, c.logp, up, c.batch, report).loss -
                                 slopes_of(loss, c.logp, down, c.batch, report).loss) /
                                (2 * h);
      EXPECT_NEAR(claimed.dentropy[t], by_entropy, 1e-7) << title(loss) << " token " << t;
    }
  }
}

TEST(EveryLoss, IsTheSumOverItsMicroBatches) {
  const CatalogCase c;
  for (const auto& loss : catalog()) {
    if (loss.needs().whole_batch) continue;  // the trainer gives it the whole batch: tests/parity
    for (const std::int32_t budget : {1, 13, 20, 1000}) {
      Report whole_report, parts_report;
      const auto whole = slopes_of(loss, c.logp, c.entropy, c.batch, whole_report);
      double sum = 0;
      std::vector<double> dlogp, dentropy;
      const auto bounds = micro_batches(c.batch, budget);
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        const auto begin = c.batch.offsets[static_cast<std::size_t>(bounds[i])],
                   end = c.batch.offsets[static_cast<std::size_t>(bounds[i + 1])];
        Report report;
        const auto slice = c.batch.slice(bounds[i], bounds[i + 1]);
        const auto share =
            slopes_of(loss, part(c.logp, begin, end), part(c.entropy, begin, end), slice, report);
        sum += share.loss;
        dlogp.insert(dlogp.end(), share.dlogp.begin(), share.dlogp.end());
        dentropy.insert(dentropy.end(), share.dentropy.begin(), share.dentropy.end());
        parts_report.merge(report);
      }
      EXPECT_NEAR(sum, whole.loss, 1e-12) << title(loss);
      EXPECT_EQ(dlogp, whole.dlogp) << title(loss);
      EXPECT_EQ(dentropy, whole.dentropy) << title(loss);
      const auto expected = whole_report.values(), found = parts_report.values();
      ASSERT_EQ(expected.size(), found.size()) << title(loss);
      for (const auto& [name, value] : expected)
        EXPECT_NEAR(found.at(name), value, 1e-12) << title(loss) << " " << name;
    }
  }
}

TEST(EveryLoss, DoesNotReadTokensThatAreNotTrainedOn) {
  const CatalogCase c;
  for (const auto& loss : catalog()) {
    for (const double garbage : {1e4, -1e4, std::numeric_limits<double>::quiet_NaN(),
                                 -std::numeric_limits<double>::infinity()}) {
      CatalogCase dirty;
      for (std::size_t t = 0; t < c.logp.size(); ++t) {
        if (c.batch.mask[t] != 0) continue;
        dirty.logp[t] = garbage;
        dirty.entropy[t] = garbage;
        dirty.batch.old_logp[t] = 0;
        dirty.batch.rollout_logp[t] = 9;
        dirty.batch.reference_logp[t] = 50;
      }
      Report clean_report, dirty_report;
      const auto expected = slopes_of(loss, c.logp, c.entropy, c.batch, clean_report);
      const auto found = slopes_of(loss, dirty.logp, dirty.entropy, dirty.batch, dirty_report);
      EXPECT_EQ(found.loss, expected.loss) << title(loss);
      EXPECT_EQ(found.dlogp, expected.dlogp) << title(loss);
      EXPECT_EQ(found.dentropy, expected.dentropy) << title(loss);
      EXPECT_EQ(dirty_report.values(), clean_report.values()) << title(loss);
    }
  }
}

TEST(EveryLoss, IsGivenBackByItsSpec) {
  using engine::loss::entry;
  engine::loss::LossTable table;
  table.insert(entry<SftLoss>());
  table.insert(entry<DpoLoss>());
  table.insert(entry<GrpoLoss>());
  table.insert(entry<PpoLoss>());
  table.insert(entry<SimpoLoss>());
  table.insert(entry<CpoLoss>());
  table.insert(entry<OrpoLoss>());
  table.insert(entry<KtoLoss>());
  for (const auto& loss : catalog()) {
    const auto again = make_loss(table, loss.spec());
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(again->spec(), loss.spec());
  }
}

}  // namespace
}  // namespace troupe::algorithms
