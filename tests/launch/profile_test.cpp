// Profiling: the window, sums and nesting of the recorder, and its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "launch/profile/counters.h"
#include "launch/profile/recorder.h"
#include "launch/profile/report.h"
#include "launch/profile/step_board.h"

namespace troupe::launch::profile_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A recorder whose step, time and counters are set by the test.
class Recording : public testing::Test {
 protected:
  profile::Recorder& recorder() {
    if (!recorder_)
      recorder_.emplace(options_, sources_, [this](const profile::Recorder&) { ++closed_; });
    return *recorder_;
  }
  /// Records a span from `at` for `length` nanoseconds with its nested spans.
  template <class Within>
  void span(SpanKind kind, std::string_view name, std::int64_t length, Work work,
            const Within& within) {
    const std::int64_t began = now_;
    const ScopedSpan one(&recorder(), [&] {
      return SpanStart{kind, name, work,
                       kind != SpanKind::op || recorder().wants_shapes() ? "[2, 3]" : ""};
    });
    within();
    now_ = began + length;
  }
  void op(std::string_view name, std::int64_t length, Work work = {}) {
    span(SpanKind::op, name, length, work, [] {});
  }
  const profile::Sum& sum_of(std::string_view name) {
    sums_ = recorder().sums();
    const auto found = std::ranges::find(sums_, name, &profile::Sum::name);
    if (found == sums_.end()) throw std::runtime_error("no row of that name");
    return *found;
  }

  profile::RecorderOptions options_{.step_start = 3, .step_end = 5};
  std::int64_t step_ = 3, now_ = 1000;
  int closed_ = 0, ceilings_ = 0;
  profile::RecorderSources sources_{.step = [this] { return step_; },
                                    .now = [this] { return now_; },
                                    .ceiling =
                                        [this] {
                                          ++ceilings_;
                                          return engine::ops::Ceiling{.f32_flops = 4e9,
                                                                      .read_bytes = 2e9};
                                        },
                                    .counts = {},
                                    .busy = {},
                                    .memory = {}};
  std::optional<profile::Recorder> recorder_;
  std::vector<profile::Sum> sums_;
};

TEST_F(Recording, HoldsTheStepsFromTheFirstToBeforeTheEnd) {
  for (step_ = 0; step_ < 7; ++step_) op("gemm", 10);
  std::vector<std::int64_t> steps;
  for (const profile::Event& event : recorder().events()) steps.push_back(event.step);
  EXPECT_THAT(steps, ElementsAre(3, 4));
  EXPECT_EQ(ceilings_, 1);
  EXPECT_EQ(closed_, 1);
  recorder().finish();
  EXPECT_EQ(closed_, 1);
}

TEST_F(Recording, IsClosedByTheEndOfTheRunOnlyWhereItHadBegun) {
  step_ = 1;
  op("gemm", 10);
  recorder().finish();
  EXPECT_EQ(closed_, 0);
  step_ = 3;
  op("gemm", 10);
  recorder().finish();
  EXPECT_EQ(closed_, 1);
}

TEST_F(Recording, APhaseThatBeganInAProfiledStepIsRecordedToItsEnd) {
  step_ = 4;
  span(SpanKind::phase, "optimizer", 50, {}, [&] {
    step_ = 9;
    op("adamw", 10);
  });
  op("gemm", 10);
  ASSERT_EQ(recorder().events().size(), 2u);
  EXPECT_EQ(recorder().events()[0].span.name, "adamw");
  EXPECT_EQ(recorder().events()[1].step, 4);
}

TEST_F(Recording, SumsCallsTimeAndWorkAgainstTheCeiling) {
  op("gemm", 1000, {.flops = 2000, .bytes = 100});  // half of the 4 FLOP/ns
  op("gemm", 1000, {.flops = 4000, .bytes = 100});
  op("copy", 500, {.bytes = 250});  // a quarter of the 2 bytes/ns
  const profile::Sum gemm = sum_of("gemm"), copy = sum_of("copy");
  EXPECT_EQ(gemm.calls, 2);
  EXPECT_EQ(gemm.spent.nanoseconds, 2000);
  EXPECT_EQ(gemm.work.flops, 6000);
  EXPECT_DOUBLE_EQ(gemm.bound_seconds, 1500e-9);
  EXPECT_DOUBLE_EQ(copy.bound_seconds, 125e-9);
  EXPECT_EQ(recorder().sums().front().name, "gemm");  // the longest first
  const std::string csv = profile::table_csv(recorder());
  EXPECT_THAT(csv, HasSubstr("operator,gemm,,\"\",2,2e-06,0.8,6000,3,200,0.1,"));
  EXPECT_THAT(csv, HasSubstr("operator,copy,,\"\",1,5e-07,0.2,0,,250,0.5,"));
}

TEST_F(Recording, TheRowsOfTheTableHaveTheColumnsOfItsHeadAndMakeTheWhole) {
  span(SpanKind::phase, "forward", 1000, {}, [&] { op("gemm", 600, {.flops = 1200}); });
  const std::string csv = profile::table_csv(recorder());
  std::vector<std::int64_t> commas;
  for (std::size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1)
    commas.push_back(std::count(csv.begin() + static_cast<std::ptrdiff_t>(at),
                                csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n', at)),
                                ','));
  EXPECT_THAT(commas, ElementsAre(15, 15, 15, 15));
  EXPECT_THAT(csv, HasSubstr("rest,,,\"\",,4e-07,0.4,"));
  const std::string text = profile::table_text(recorder(), {.name = "rank 0"});
  EXPECT_THAT(text, HasSubstr("Profile of rank 0: 1 step (3 to 3)"));
  EXPECT_THAT(text, HasSubstr("(other)"));
  EXPECT_THAT(text, HasSubstr("60.0 %"));
}

TEST_F(Recording, StacksAndShapesMakeRowsOfTheirOwnWhereTheyAreWanted) {
  options_.stack = options_.shapes = true;
  span(SpanKind::phase, "forward_backward", 100, {}, [&] {
    span(SpanKind::phase, "forward", 20, {}, [&] { op("gemm", 10); });
    span(SpanKind::phase, "backward", 40, {}, [&] { op("gemm", 10); });
  });
  std::vector<std::string> stacks;
  for (const profile::Sum& sum : recorder().sums())
    if (sum.name == "gemm") stacks.push_back(cat(sum.stack, " ", sum.shapes));
  EXPECT_THAT(stacks, testing::UnorderedElementsAre("forward_backward/forward [2, 3]",
                                                    "forward_backward/backward [2, 3]"));
}

TEST_F(Recording, KeepsNoMoreEventsThanItMayButSumsThemAll) {
  options_.max_events = 2;
  for (int i = 0; i < 5; ++i) op("gemm", 10);
  EXPECT_EQ(recorder().events().size(), 2u);
  EXPECT_EQ(recorder().dropped(), 3);
  EXPECT_EQ(sum_of("gemm").calls, 5);
}

TEST_F(Recording, KnowsTheMostMemoryThatTensorsHad) {
  std::int64_t bytes = 0;
  sources_.memory = [&] { return bytes; };
  span(SpanKind::phase, "forward", 100, {}, [&] {
    bytes = 700;
    op("gemm", 10);
    bytes = 200;
  });
  EXPECT_EQ(recorder().peak_tensor_bytes(), 700);
  const auto trace =
      value_or_throw(parse_json(profile::trace_json(recorder(), {.name = "rank 0"}), "the trace"));
  std::vector<std::int64_t> shown;
  for (const Json& event : trace.find("traceEvents")->array())
    if (event.find("ph")->string() == "C")
      shown.push_back(event.find("args")->find("tensors")->integer());
  EXPECT_THAT(shown, ElementsAre(700, 200));
}

TEST_F(Recording, ReadsCountersAroundEachSpan) {
  sources_.counts = [this] { return profile::Counts{3 * now_, 2 * now_, now_}; };
  sources_.busy = [this] { return 2 * now_; };
  op("gemm", 10);
  op("gemm", 30);
  const profile::Sum sum = sum_of("gemm");
  EXPECT_EQ(sum.spent.counts.instructions, 120);
  EXPECT_EQ(sum.spent.counts.cycles, 80);
  EXPECT_EQ(sum.spent.counts.cache_misses, 40);
  EXPECT_EQ(sum.spent.busy, 80);
  EXPECT_THAT(profile::table_csv(recorder()), HasSubstr(",2,120,80,40\n"));
}

TEST_F(Recording, TheTraceIsJsonWhoseEventsNest) {
  span(SpanKind::phase, "forward", 1000, {}, [&] {
    op("gemm", 300, {.flops = 60});
    span(SpanKind::communication, "broadcast", 100, {.bytes = 8}, [] {});
  });
  step_ = 4;
  op("adamw", 50);
  const auto trace = value_or_throw(parse_json(
      profile::trace_json(recorder(), {.name = "rank 1", .rank = 1, .origin = 500}), "the trace"));
  const auto& events = trace.find("traceEvents")->array();
  const auto event_of = [&](std::string_view name) {
    return *std::ranges::find_if(events, [&](const Json& each) {
      return each.find("name")->string() == name && each.find("dur");
    });
  };
  const Json forward = event_of("forward"), gemm = event_of("gemm"), step = event_of("step 3");
  EXPECT_EQ(forward.find("pid")->integer(), 1);
  EXPECT_DOUBLE_EQ(forward.find("ts")->number(), 0.5);
  EXPECT_DOUBLE_EQ(forward.find("dur")->number(), 1);
  EXPECT_DOUBLE_EQ(gemm.find("dur")->number(), 0.3);
  EXPECT_EQ(gemm.find("args")->find("flops")->number(), 60);
  EXPECT_EQ(event_of("broadcast").find("args")->find("what")->string(), "[2, 3]");
  EXPECT_EQ(step.find("tid")->integer(), 1);
  EXPECT_DOUBLE_EQ(step.find("dur")->number(), 1);
  EXPECT_EQ(event_of("adamw").find("args")->find("step")->integer(), 4);
}

TEST(StepBoards, ShowTheStepToEveryProcessThatMapsThem) {
  const std::string path = testing::TempDir() + "steps";
  {
    auto leader = value_or_throw(profile::StepBoard::create(path));
    const auto other = value_or_throw(profile::StepBoard::open(path));
    EXPECT_EQ(other.step(), 0);
    leader.publish(7);
    EXPECT_EQ(other.step(), 7);
    EXPECT_EQ(other.origin(), leader.origin());
    EXPECT_GT(other.origin(), 0);
  }
  const auto gone = profile::StepBoard::open(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::not_found);
}

TEST(HardwareCounters, CountOrSayWhyNot) {
  const auto counters = profile::Counters::open();
  if (!counters) {
    EXPECT_EQ(counters.error().code, Errc::unsupported);
    EXPECT_THAT(counters.error().what, HasSubstr("perf_event_open"));
    return;
  }
  const profile::Counts before = (*counters)->read();
  volatile double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum = sum + i;
  EXPECT_GT(((*counters)->read() - before).instructions, 100'000);
}

}  // namespace
}  // namespace troupe::launch::profile_test
