// The plots of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/journal/plot.h"
#include "launch/journal/svg.h"
#include "launch/journal/timeline.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Plot, HasAPanelForEachMetric) {
  std::vector<journal::Panel> panels{
      {"loss <&>", {{"", {}}}}, {"reward", {{"", {{1, 0.5}}}}}, {"empty", {}}};
  for (int i = 1; i <= 5000; ++i) panels[0].lines[0].points.emplace_back(i, 1.0 / i);
  const std::string picture = journal::svg("a run", panels);
  EXPECT_THAT(picture, HasSubstr("loss &lt;&amp;&gt;"));
  EXPECT_THAT(picture, HasSubstr("last 0.0002"));
  EXPECT_THAT(picture, Not(HasSubstr("empty")));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
  EXPECT_LT(picture.size(), 60000u);
  EXPECT_THAT(journal::svg("nothing yet", {}), HasSubstr("</svg>"));
}

TEST(Plot, AxesHaveThreeRoundTicksAtLeast) {
  EXPECT_THAT(journal::axis_ticks(0, 1), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(journal::axis_ticks(2.9, 3.4),
              ElementsAre(3, testing::DoubleEq(3.2), testing::DoubleEq(3.4)));
  EXPECT_THAT(journal::axis_ticks(-3, 3), ElementsAre(-2, 0, 2));
  for (const double high : {1.001, 1.7, 3.3, 9.9, 12.0, 101.0, 4999.0}) {
    EXPECT_GE(journal::axis_ticks(1, high).size(), 3u) << high;
    EXPECT_LE(journal::axis_ticks(1, high).size(), 8u) << high;
  }
  EXPECT_EQ(journal::axis_ticks(5, 5).size(), 2u);
}

TEST(Plot, AConstantHasAnAxisOfATenthAround) {
  const std::string picture = journal::svg("", {{"length", {{"", {{1, 32}, {2, 32}, {3, 32}}}}}});
  for (const char* tick : {">30<", ">32<", ">34<"}) EXPECT_THAT(picture, HasSubstr(tick));
}

/// The y of the last point of the thick line.
double last_height(const std::string& picture) {
  const auto line = picture.rfind("stroke-width=\"2\"");
  const auto end = picture.find("\"/>", picture.find("points=", line)),
             comma = picture.rfind(',', end);
  return std::stod(picture.substr(comma + 1, end - comma));
}

TEST(Plot, TheMeanDoesNotEndAtTheLastPoint) {
  journal::Curve curve{"", {}};
  for (int i = 1; i <= 400; ++i) curve.points.emplace_back(i, i == 400 ? 8 : i % 2 ? 9 : 9.01);
  const double with_an_outlier = last_height(journal::svg("", {{"length", {curve}}}));
  curve.points.back().second = 9;
  curve.points[0].second = 8;  // the same axis
  const double without = last_height(journal::svg("", {{"length", {curve}}}));
  EXPECT_LT(std::abs(with_an_outlier - without), 20) << "of 166 pixels";
}

TEST(Plot, ShowsTheMetricsOfEachMethodWithTheirEvaluations) {
  const std::string path = testing::TempDir() + "plot_metrics.jsonl";
  const auto titles = [&](const std::string& line) {
    EXPECT_TRUE(write_file_durably(path, line));
    std::vector<std::string> out;
    for (const journal::Panel& panel : journal::panels_of(path)) {
      out.push_back(panel.title);
      for (const journal::Curve& each : panel.lines)
        out.back() += each.name.empty() ? "" : " " + each.name;
    }
    return out;
  };
  EXPECT_THAT(titles("{\"step\":1,\"loss\":3,\"grad_norm\":1,\"learning_rate\":1e-3,\"eval/"
                     "loss\":3.1}\n"),
              ElementsAre("loss eval", "grad_norm", "learning_rate"));
  EXPECT_THAT(titles("{\"step\":1,\"loss\":0.7,\"accuracy\":0.5,\"margin\":0.1,\"eval/"
                     "accuracy\":0.6}\n"),
              ElementsAre("loss", "accuracy eval", "margin"));
  EXPECT_THAT(titles("{\"step\":1,\"loss\":0,\"reward\":0.5,\"objective/kl\":1,\"policy/"
                     "entropy_avg\":2,\"policy/clipfrac_avg\":0.1,\"clip_ratio/"
                     "region_mean\":0.1,\"critic/vf_loss\":1,\"critic/vf_explained_var\":0.1,"
                     "\"eval/reward\":0.4,\"eval/pass@4\":0.6}\n"),
              ElementsAre("reward eval", "eval/pass@k pass@4", "objective/kl", "policy/entropy_avg",
                          "clip_ratio/region_mean", "critic/vf_loss", "critic/vf_explained_var"));
}

actors::AskRecord drawn_ask(const std::string& node, const std::string& type, std::int64_t began,
                            std::int64_t ended) {
  constexpr std::int64_t ms = 1'000'000, start = 5'000'000'000;
  return {{node, "role"},           type, start, start + began * ms, start + ended * ms,
          start + (ended + 1) * ms, false};
}

TEST(Timeline, ShowsEachActorsWorkInItsRow) {
  const auto picture = journal::timeline_svg(
      7, 7,
      {drawn_ask("rollout-0", "generate", 0, 60), drawn_ask("rollout-0", "generate", 50, 80),
       drawn_ask("reference", "logprobs", 40, 99)});
  EXPECT_THAT(picture, HasSubstr("Step 7"));
  EXPECT_THAT(picture, HasSubstr(">rollout-0/role<"));
  EXPECT_THAT(picture, HasSubstr("busy 80 %")) << "handlers that overlap count once";
  EXPECT_THAT(picture, HasSubstr("busy 59 %"));
  EXPECT_THAT(picture, HasSubstr(">0.02 s<")) << "100 ms have round ticks";
}

TEST(Timeline, LabelsNameTheRoleOnce) {
  std::vector<actors::AskRecord> asks;
  for (const auto& [node, actor] : {std::pair{"process", "verifier"}, std::pair{"policy", "policy"},
                                    std::pair{"rollout-1", "rollout"}}) {
    asks.push_back(drawn_ask(node, "save", 0, 9));
    asks.back().by.actor = actor;
  }
  const auto picture = journal::timeline_svg(1, 1, asks);
  for (const char* label : {">verifier<", ">policy<", ">rollout-1<"})
    EXPECT_THAT(picture, HasSubstr(label));
}

TEST(Timeline, DrawsAllUpdatesOfARolloutStep) {
  const std::string folder = testing::TempDir() + "timeline_rounds";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  journal::Timeline timeline(value_or_throw(OutputFolder::open(folder)), 0);
  for (std::int64_t step = 1; step <= 6; ++step) {
    if (step % 3 == 1) timeline.answered(drawn_ask("a", "generate", 100 * step, 100 * step + 50));
    timeline.answered(drawn_ask("a", "train_step", 100 * step + 50, 100 * step + 90));
    // An evaluation after the update.
    if (step == 6) timeline.answered(drawn_ask("a", "generate", 100 * step + 90, 100 * step + 99));
    timeline.record(step);
  }
  ASSERT_TRUE(timeline.draw());
  const std::string picture = read_file(folder + "/timeline.svg").value_or("");
  EXPECT_THAT(picture, HasSubstr("Steps 4 to 6"));
  EXPECT_THAT(picture, HasSubstr(">generate<"));
}

}  // namespace
}  // namespace troupe::launch
