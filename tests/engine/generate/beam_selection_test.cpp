#include "engine/generate/beam_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace troupe::engine::generate {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::int32_t> tokens(const std::vector<Continuation>& all) {
  std::vector<std::int32_t> out;
  for (const Continuation& each : all) out.push_back(each.token);
  return out;
}

Generation of_length(std::size_t length, std::int32_t mark) {
  Generation g;
  g.ids.assign(length, mark);
  return g;
}

TEST(BeamSelection, EqualScoresGoToTheBetterBeamAndThenTheLowerId) {
  const LogitsRow row{{-1, -2, -1, -3}, {0, 1, 2, 3}};
  std::vector<Continuation> all;
  add_best(row, 1, -1, 3, all);
  add_best(row, 0, -1, 3, all);
  keep_best(all, 5);
  EXPECT_THAT(tokens(all), ElementsAre(0, 2, 0, 2, 1));
  EXPECT_EQ(all[0].parent, 0U);
  EXPECT_EQ(all[2].parent, 1U);
}

TEST(BeamSelection, BannedTokensAreNoContinuations) {
  std::vector<Continuation> all;
  add_best(LogitsRow{{-1, -2, -3}, {1}}, 0, 0, 4, all);
  EXPECT_THAT(tokens(all), ElementsAre(1));
}

TEST(BeamSelection, DrawsAreASampleWithoutReplacement) {
  // Plackett and Luce: the first draw has the probabilities p, the second those of the others.
  const LogitsRow first{{-0.5, -1.5, -9, -2.5}, {0, 1, 3}}, second{{-1, -2}, {0, 1}};
  const double sums[] = {0.25, -0.5};
  std::map<std::pair<std::size_t, std::int32_t>, double> p;
  for (const std::int32_t id : first.kept) p[{0, id}] = std::exp(sums[0] + first.score[id]);
  for (const std::int32_t id : second.kept) p[{1, id}] = std::exp(sums[1] + second.score[id]);
  double total = 0;
  for (const auto& [each, weight] : p) total += weight;
  constexpr int draws = 40000;
  std::map<std::pair<std::size_t, std::int32_t>,
           std::map<std::pair<std::size_t, std::int32_t>, int>>
      counts;
  for (std::uint64_t id = 0; id < draws; ++id) {
    const BeamDraw draw{.seed = 5, .sample_id = id, .position = 7};
    std::vector<Continuation> all;
    add_drawn(first, 0, sums[0], 2, draw, all);
    add_drawn(second, 1, sums[1], 2, draw, all);
    keep_drawn(all, 2);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_DOUBLE_EQ(all[0].score, std::log(p[{all[0].parent, all[0].token}]));
    ++counts[{all[0].parent, all[0].token}][{all[1].parent, all[1].token}];
  }
  for (const auto& [one, of_one] : p) {
    for (const auto& [other, of_other] : p) {
      const double expected = one == other ? 0 : of_one / total * of_other / (total - of_one);
      const double std_dev = std::sqrt(expected * (1 - expected) / draws);
      EXPECT_NEAR(counts[one][other] / double{draws}, expected, 4.5 * std_dev)
          << one.first << ',' << one.second << ' ' << other.first << ',' << other.second;
    }
  }
}

TEST(BeamSelection, DrawsDependOnSeedSamplePositionAndBeamAlone) {
  const LogitsRow row{{-1, -1, -1, -1, -1, -1, -1, -1}, {0, 1, 2, 3, 4, 5, 6, 7}};
  const auto drawn = [&](const BeamDraw& draw, std::size_t parent) {
    std::vector<Continuation> all;
    add_drawn(row, parent, 0, 8, draw, all);
    return tokens(all);
  };
  const auto base = drawn({1, 2, 3}, 0);
  EXPECT_EQ(drawn({1, 2, 3}, 0), base);
  for (const auto& other :
       {drawn({2, 2, 3}, 0), drawn({1, 3, 3}, 0), drawn({1, 2, 4}, 0), drawn({1, 2, 3}, 1)})
    EXPECT_NE(other, base);
}

TEST(BeamSelection, ABannedBeamIsDrawnLast) {
  const LogitsRow row{{-1, -8}, {0, 1}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<Continuation> all;
    add_drawn(row, 0, 0, 4, {.seed = seed}, all);
    add_drawn(row, 1, beam_ban, 4, {.seed = seed}, all);
    keep_drawn(all, 3);
    EXPECT_EQ(all[0].parent + all[1].parent, 0U);
    EXPECT_EQ(all[2].parent, 1U);
  }
}

TEST(BeamSelection, KeepsEnoughThatSomeGoOnWhenTheBestAllEnd) {
  const BeamSelection three({.count = 3}, 10);
  EXPECT_EQ(three.wanted(0), 6U);
  EXPECT_EQ(three.wanted(1), 6U);
  EXPECT_EQ(three.wanted(4), 15U);
}

TEST(BeamSelection, WhatEndedContinuesOnlyWhereThereAreTooFewOthers) {
  const BeamSelection two({.count = 2}, 10);
  const std::vector<Continuation> best = {
      {0, 7, -1, true}, {0, 5, -2, false}, {1, 6, -3, true}, {1, 4, -4, false}};
  EXPECT_THAT(tokens(two.continuing(best)), ElementsAre(5, 4));
  EXPECT_TRUE(two.may_return(best, 0));
  EXPECT_FALSE(two.may_return(best, 1)) << "it continues";
  EXPECT_FALSE(two.may_return(best, 2)) << "it is not among the best two";
  const std::vector<Continuation> few = {{0, 7, -1, true}, {0, 5, -2, false}};
  EXPECT_THAT(tokens(two.continuing(few)), ElementsAre(5, 7));
}

TEST(BeamSelection, ReturnsTheBestByLengthPenalty) {
  BeamSelection two({.count = 2, .length_penalty = 2, .returned = 2}, 10);
  two.end(of_length(1, 1), -1);   // -1
  two.end(of_length(2, 2), -2);   // -1/2
  two.end(of_length(4, 3), -12);  // -3/4
  const auto returned = two.take_returned();
  ASSERT_EQ(returned.size(), 2U);
  EXPECT_THAT(returned[0].ids, ElementsAre(2, 2));
  EXPECT_THAT(returned[0].score, DoubleEq(-0.5));
  EXPECT_THAT(returned[1].score, DoubleEq(-0.75));
}

struct Stop {
  EarlyStopping early;
  double penalty, running;
  bool goes_on;
};

TEST(BeamSelection, StopsAsEarlyStoppingSays) {
  // Two sequences of length 2 have ended with sums -2 and -3; outputs have 4 tokens now and room
  // for 8.
  for (const Stop& c :
       {Stop{EarlyStopping::no, 1, -5.9, true}, Stop{EarlyStopping::no, 1, -6.1, false},
        Stop{EarlyStopping::yes, 1, -1, false}, Stop{EarlyStopping::never, 1, -6.1, true},
        Stop{EarlyStopping::never, 1, -12.1, false}, Stop{EarlyStopping::never, 0, -2.9, true},
        Stop{EarlyStopping::never, 0, -3.1, false}, Stop{EarlyStopping::no, -1, -1.4, true},
        Stop{EarlyStopping::no, -1, -1.6, false}}) {
    BeamSelection two({.count = 2, .length_penalty = c.penalty, .early_stopping = c.early}, 8);
    const std::vector<Continuation> next = {{0, 1, c.running, false}, {0, 2, c.running - 1, false}};
    EXPECT_TRUE(two.may_improve(next, next, 4)) << "nothing has ended";
    two.end(of_length(2, 1), -2);
    EXPECT_TRUE(two.may_improve(next, next, 4)) << "one has not ended";
    two.end(of_length(2, 2), -3);
    EXPECT_EQ(two.may_improve(next, next, 4), c.goes_on)
        << static_cast<int>(c.early) << ", " << c.penalty << ", " << c.running;
  }
}

TEST(BeamSelection, StopsWhenAllHaveEnded) {
  BeamSelection two({.count = 2}, 8);
  const std::vector<Continuation> next = {{0, 1, -1, true}, {0, 2, -2, true}};
  EXPECT_FALSE(two.may_improve(next, next, 8));
  EXPECT_THAT(two.take_returned(), IsEmpty());
}

}  // namespace
}  // namespace troupe::engine::generate
