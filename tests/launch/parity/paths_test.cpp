// What the paths promise for models that are hard to agree about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/parity/measure.h"
#include "launch/parity/report.h"
#include "tests/launch/parity/flipped_bit.h"

namespace troupe::launch::parity {
namespace {

using engine::ops::Precision;
using testing::HasSubstr;

const PairResult& pair_with(const Report& report, std::string_view second) {
  const auto found = std::ranges::find(report.pairs, second, &PairResult::second);
  if (found == report.pairs.end()) throw Failure({Errc::internal, std::string(second)});
  return *found;
}

Report report_of(const ParityOptions& options) {
  return measure(value_or_throw(settings_of(options))).front();
}

TEST(Parity, TextsThatCrossASwitchOfRotaryFactorsAreEqualOrExceptions) {
  FlippedBit none;
  for (const char* model : {"llama_dynamic_rope", "phi3_longrope"}) {
    ParityOptions options = none.options_for(model);
    options.max_new_tokens = 14;
    const Report report = report_of(options);
    EXPECT_TRUE(report.kept()) << report_text(std::span(&report, 1));
    const PairResult& decode = pair_with(report, "decode");
    EXPECT_GT(decode.excepted, 0) << "no text crosses a switch";
    EXPECT_GT(decode.tokens, 0);
    EXPECT_EQ(pair_with(report, "prompt").excepted, 0) << "scores of whole texts have no exception";
    EXPECT_THAT(report_text(std::span(&report, 1)), HasSubstr("exception: "));
  }
}

TEST(Parity, WeightsOf8BitsDifferAndAreReportedOnly) {
  FlippedBit none;
  ParityOptions options = none.options_for("llama");
  options.paths = {"int8"};
  const Report report = report_of(options);
  EXPECT_TRUE(report.kept());
  EXPECT_GT(pair_with(report, "int8").largest, 1e-4);
}

TEST(Parity, AllTokensOfTheVocabularyAreComparedAtSomePositions) {
  FlippedBit none;
  ParityOptions options = none.options_for("llama");
  options.paths = {"decode"};
  options.targets = -1;
  const Report report = report_of(options);
  EXPECT_TRUE(report.kept());
  EXPECT_EQ(pair_with(report, "vocabulary").tokens, 4 * 3 * 96);
  options.targets = 10;
  EXPECT_EQ(pair_with(report_of(options), "vocabulary").tokens, 4 * 3 * 10);
}

TEST(Parity, GridsKeepTheirBoundsAndStagesTheirBits) {
  FlippedBit none;
  ParityOptions options = none.options_for("llama");
  options.paths = {"batch", "prompt"};
  options.sets = {"parallel.tp=2"};
  const Report tp = report_of(options);
  EXPECT_TRUE(tp.kept()) << report_text(std::span(&tp, 1));
  EXPECT_EQ(pair_with(tp, "score (dp 1 x tp 2)").promise, Promise::bound);
  EXPECT_GT(pair_with(tp, "score (dp 1 x tp 2)").largest, 0) << "sums over ranks round otherwise";
  EXPECT_EQ(pair_with(tp, "batch (dp 1 x tp 2)").promise, Promise::equal);
  options.sets = {"parallel.pp=2"};
  const Report pp = report_of(options);
  EXPECT_TRUE(pp.kept()) << report_text(std::span(&pp, 1));
  EXPECT_EQ(pair_with(pp, "score (dp 1 x tp 1 x pp 2)").promise, Promise::equal);
  options.sets = {"parallel.cp=2"};
  const Report cp = report_of(options);
  EXPECT_TRUE(cp.kept()) << report_text(std::span(&cp, 1));
}

TEST(Parity, ABoundIsBrokenByAValueOutsideOfIt) {
  const Path& score = paths().front();
  engine::models::DecoderSpec spec;
  const std::vector<Text> texts{{{1, 2}, 1}};
  const auto of = [](float logp) { return PathValues{{{1, {{2, logp}}}}}; };
  const auto broken = [&](float other, Promise promise) {
    return compare(of(-2), of(other), score, promise, {spec, texts}).broken.has_value();
  };
  EXPECT_FALSE(broken(-2.00001F, Promise::bound));
  EXPECT_TRUE(broken(-2.0001F, Promise::bound));
  EXPECT_TRUE(broken(-2.0000005F, Promise::equal));
  EXPECT_FALSE(broken(-3, Promise::none));
  const auto found = compare(of(-2), of(-3), score, Promise::equal, {spec, texts}).broken;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->position, 1);
  EXPECT_EQ(found->token, 2);
  EXPECT_EQ(found->second, -3);
}

}  // namespace
}  // namespace troupe::launch::parity
