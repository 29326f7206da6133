// The profiled communicator: every collective is recorded with its bytes, and moves the same bytes.
#include "engine/parallel/profiled_communicator.h"

#include <gmock/gmock.h>

#include "engine/parallel/all_reduce.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::parallel {
namespace {

using test::on_ranks;

class RecordedSpans final : public Spans {
 public:
  bool recording() override { return on; }
  void begin(SpanStart span) override {
    lines.push_back(std::string(span.name) + " " +
                    std::to_string(static_cast<int>(span.work.bytes)) + ": " + span.detail);
  }
  void end() noexcept override { ++ended; }
  bool wants_shapes() const override { return false; }

  bool on = true;
  std::vector<std::string> lines;
  std::size_t ended = 0;
};

std::span<std::byte> bytes_of(auto& values) {
  return std::as_writable_bytes(std::span(values));
}

TEST(ProfiledCommunicator, ReportsEveryCollectiveOfAGroupAndThoseSplitOff) {
  on_ranks(2, [](Communicator& group) {
    RecordedSpans recorded;
    const auto profiled = make_profiled(group.split(0, group.rank()), recorded);
    ASSERT_EQ(profiled->rank(), group.rank());
    ASSERT_EQ(profiled->size(), 2);
    std::vector<std::int32_t> mine{group.rank(), 7}, all(4), swapped(2);
    profiled->all_gather(bytes_of(mine), bytes_of(all), "a gathering");
    profiled->all_to_all(bytes_of(mine), bytes_of(swapped), "an exchange");
    const auto half = profiled->split(0, -profiled->rank());
    half->broadcast(bytes_of(mine), 0, "a broadcast");
    half->broadcast_idle(bytes_of(mine), 1, "a long wait");
    EXPECT_THAT(all, testing::ElementsAre(0, 7, 1, 7));
    EXPECT_EQ(mine[0], 1);  // rank 0 of the half is rank 1
    EXPECT_THAT(recorded.lines,
                testing::ElementsAre("all_gather 8: a gathering", "all_to_all 4: an exchange",
                                     "broadcast 8: a broadcast", "broadcast_idle 8: a long wait"));
    EXPECT_EQ(recorded.ended, 4u);
    recorded.on = false;
    half->broadcast(bytes_of(mine), 0, "a broadcast that nobody hears of");
    EXPECT_EQ(recorded.lines.size(), 4u);
  });
}

TEST(ProfiledCommunicator, SumsToTheSameBits) {
  on_ranks(3, [](Communicator& group) {
    RecordedSpans recorded;
    const auto profiled = make_profiled(group.split(0, group.rank()), recorded);
    std::vector<float> plain, watched;
    for (int i = 0; i < 50; ++i) plain.push_back(0.1F * static_cast<float>(i * (group.rank() + 1)));
    watched = plain;
    all_reduce_sum(group, std::span<float>(plain), "plain");
    all_reduce_sum(*profiled, std::span<float>(watched), "watched");
    EXPECT_EQ(plain, watched);
    EXPECT_FALSE(recorded.lines.empty());
    EXPECT_EQ(recorded.lines.size(), recorded.ended);
  });
}

}  // namespace
}  // namespace troupe::engine::parallel
