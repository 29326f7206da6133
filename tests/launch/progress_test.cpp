// The progress line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "launch/journal/progress.h"
#include "launch/terminal/display_width.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Progress, ShowsTheRewardTheSpeedAndTheTimeLeft) {
  double now = 100;
  journal::Progress progress(stderr, {}, 0, [&] { return now; });
  progress.begin(10, 4);
  now += 2;
  progress.step(5, {{"loss", 1e-9}, {"reward", 0.5}, {"tokens", 400}, {"kl", 9}}, {400, 1});
  EXPECT_EQ(progress.line(), "step 5/10 reward 0.5 kl 9 400 tok/s ETA 0:10");
  EXPECT_EQ(terminal::clock_text(3723), "1:02:03");
  EXPECT_EQ(terminal::clock_text(-1), "0:00");
}

TEST(Progress, ShowsWhatMattersForTheMethod) {
  const auto line = [](const algorithms::Metrics& metrics) {
    journal::Progress progress(stderr, {}, 0, [] { return 0.0; });
    progress.begin(2, 0);
    progress.step(2, metrics, {});
    return progress.line();
  };
  EXPECT_THAT(line({{"loss", 2.5}, {"grad_norm", 1}}), StartsWith("step 2/2 loss 2.5 ETA"));
  EXPECT_THAT(line({{"loss", 0.6}, {"rewards/accuracies", 0.75}, {"rewards/margins", 1.5}}),
              StartsWith("step 2/2 accuracy 0.75 loss 0.6 margin 1.5"));
  EXPECT_THAT(line({{"loss", 0}, {"reward", std::nan("")}}), StartsWith("step 2/2 reward n/a ETA"));
}

TEST(Progress, OfAnAsynchronousRunShowsStalenessAndMismatch) {
  journal::Progress progress(stderr, {}, 0, [] { return 0.0; });
  progress.begin(2, 0);
  progress.step(2,
                {{"reward", 0.5},
                 {"kl", 0.1},
                 {"entropy", 1.5},
                 {"sampling/sampling_logp_difference/mean", 0.0123},
                 {"staleness/mean", 0.5},
                 {"staleness/max", 2}},
                {});
  EXPECT_EQ(progress.line(),
            "step 2/2 reward 0.5 kl 0.1 entropy 1.5 staleness 2 mismatch 0.0123 ETA 0:00");
  EXPECT_EQ(progress.line(66), "step 2/2 reward 0.5 kl 0.1 staleness 2 mismatch 0.0123 ETA 0:00")
      << "staleness before entropy";
}

TEST(Progress, AMetricThatAStepDoesNotHaveKeepsItsPlace) {
  journal::Progress progress(stderr, {}, 0, [] { return 0.0; });
  progress.begin(4, 0);
  progress.step(1, {{"reward", 0.5}, {"kl", 0.1}, {"entropy", 1.5}, {"staleness/max", 2}}, {});
  progress.step(2, {{"reward", 1}, {"staleness/max", 3}}, {});
  EXPECT_THAT(progress.line(), StartsWith("step 2/4 reward 1 kl n/a entropy n/a staleness 3 ETA"));
  progress.step(3, {{"reward", 0.25}, {"kl", 0.2}, {"entropy", 1}, {"staleness/max", 1}}, {});
  EXPECT_THAT(progress.line(), StartsWith("step 3/4 reward 0.25 kl 0.2 entropy 1 staleness 1 ETA"));
}

TEST(Progress, TheSpeedLeavesOutEvaluationAndCheckpoints) {
  double now = 0;
  journal::Progress progress(stderr, {}, 0, [&] { return now; });
  progress.begin(4, 0);
  for (std::int64_t step = 1; step <= 2; ++step) {
    now += step == 2 ? 101 : 1;
    progress.step(step, {{"loss", 1}}, {500, 1});
  }
  EXPECT_THAT(progress.line(), HasSubstr(" 500 tok/s"));
}

class ProgressAt : public testing::TestWithParam<int> {};

TEST_P(ProgressAt, FitsAndKeepsTheStepAndTheEta) {
  const auto columns = static_cast<std::size_t>(GetParam());
  double now = 0;
  std::FILE* sink = std::tmpfile();
  journal::Progress shown(sink, {.terminal = true}, 1, [&] { return now; });
  shown.begin(1000, 0);
  now = 3600;
  shown.step(123, {{"reward", 0.94123}, {"objective/kl", 12.25}, {"policy/entropy_avg", 0.3063}},
             {1e8, 3600});
  for (const auto& [text, total] :
       {std::pair{"", 0}, std::pair{"generating 512 samples", 0},
        std::pair{"evaluating held-out rows", 12}, std::pair{"\u8a55\u4fa1\u4e2d", 3}}) {
    shown.status(text, 1, total);
    const std::string line = shown.line(GetParam() - 1);
    EXPECT_LT(terminal::display_width(line), columns) << line;
    EXPECT_THAT(line, StartsWith("step 123/1000"));
    EXPECT_THAT(line, HasSubstr("ETA 7:07:4"));
    if (columns >= 60) {
      EXPECT_THAT(line, HasSubstr(total > 1 ? text : "reward 0.9412"));
    }
    if (columns >= 80 && total <= 1) {
      EXPECT_THAT(line, HasSubstr("tok/s"));
    }
    if (columns >= 200) {
      EXPECT_THAT(line, HasSubstr("[#"));
    }
  }
  std::fclose(sink);
}

INSTANTIATE_TEST_SUITE_P(Widths, ProgressAt, testing::Values(30, 60, 80, 100, 200));

TEST(Progress, AsksTheWidthAtEveryRedrawAndErasesABrokenLine) {
  std::FILE* file = std::tmpfile();
  int columns = 100;
  double now = 0;
  journal::Progress progress(file, {.terminal = true, .columns = [&] { return columns; }}, 1,
                             [&] { return now; });
  progress.begin(100, 0);
  for (std::int64_t step = 1; step <= 20; ++step) {
    columns = step <= 10 ? 100 : 30;
    now += 0.1;
    progress.step(step, {{"loss", 1}}, {100, 0.1});
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  int lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    ASSERT_EQ(text[at], '\r');
    const auto end = text.find("\x1b[J\r", at);
    ASSERT_NE(end, std::string::npos) << "the cursor rests at the start of the line";
    EXPECT_LE(end - at - 1, lines < 10 ? 99u : 29u);
    at = end + 4;
  }
  EXPECT_EQ(lines, 20);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(terminal::display_width("abc"), 3u);
  EXPECT_EQ(terminal::display_width("\u00e9"), 1u);
  EXPECT_EQ(terminal::display_width("e\u0301"), 1u) << "a combining accent";
  EXPECT_EQ(terminal::display_width("\u8a55\u4fa1"), 4u);
  EXPECT_EQ(terminal::display_width("\U0001F600"), 2u);
  EXPECT_EQ(terminal::display_width("\u26a1"), 2u) << "an emoji of an older block";
  EXPECT_EQ(terminal::display_width("\u0915\u0941"), 1u) << "a letter with a vowel sign below it";
  EXPECT_EQ(terminal::display_width("\xff"), 1u);
  EXPECT_EQ(terminal::fit_width("\u8a55\u4fa1", 3), "\u8a55");
  EXPECT_EQ(terminal::one_line("a\nb\x1b"), "a b ");
}

}  // namespace
}  // namespace troupe::launch
