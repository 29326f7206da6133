#include "tests/support/hostile.h"

#include <gmock/gmock.h>

#include <future>

#include "engine/base/random/random.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/grid.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::parallel {
namespace {

using ::testing::HasSubstr;

TEST(Hostile, PausesChangeNoBit) {
  std::vector<float> quiet(5000);
  const auto work = [&](std::unique_ptr<Communicator> world) {
    const int rank = world->rank();
    const Mesh mesh = value_or_throw(Mesh::create(std::move(world), {.dp = 2, .tp = 2}));
    std::vector<float> values(5000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(uniform(3, rank, i));
    all_reduce_sum(mesh.tp(), std::span(values), "partial outputs");
    all_reduce_sum(mesh.dp(), std::span(values), "gradients");
    barrier(mesh.world(), "the end of the step");
    return values;
  };
  test::on_ranks(4, [&](Communicator& group) {
    auto values = work(group.split(0, group.rank()));
    if (group.rank() == 0) quiet = std::move(values);
  });
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    test::on_ranks(4, [&](Communicator& group) {
      const auto values =
          work(make_hostile(group.split(0, group.rank()), {.seed = seed, .max_yields = 50}));
      EXPECT_EQ(values, quiet);
    });
}

TEST(Hostile, FailsAtTheConfiguredCall) {
  const auto run = [](std::int64_t fail_at) {
    test::on_ranks(3, [&](Communicator& group) {
      const auto hostile =
          make_hostile(group.split(0, group.rank()), {.fail_at = group.rank() == 1 ? fail_at : -1});
      const auto part = hostile->split(0, group.rank());          // call 0
      for (int i = 0; i < 5; ++i) barrier(*part, "one of five");  // calls 1 .. 5
    });
  };
  for (std::int64_t call = 0; call <= 5; ++call) {
    try {
      run(call);
      ADD_FAILURE() << call;
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("injected failure"));
    }
  }
  EXPECT_NO_THROW(run(6));
}

TEST(Hostile, ARankThatNeverComesIsNamedByTheOthers) {
  std::promise<void> others_gave_up;
  const auto gave_up = others_gave_up.get_future().share();
  const auto work = [&](Communicator& group) {
    const bool stalls = group.rank() == 1;
    const auto own = make_hostile(group.split(0, group.rank()),
                                  {.stall_at = stalls ? 2 : -1, .stall = [&] { gave_up.wait(); }});
    for (int i = 0; i < 3; ++i) {
      try {
        barrier(*own, "a step");
      } catch (const Failure& failure) {
        EXPECT_EQ(i, 2);
        EXPECT_THAT(failure.what(),
                    HasSubstr(stalls ? "rank 0 timed out in 'a step'" : "for rank 1"));
        if (!stalls) others_gave_up.set_value();
        return;
      }
    }
    ADD_FAILURE() << "the stalled call came through";
  };
  test::on_ranks(2, work, {.deadline = std::chrono::milliseconds(50)});
}

}  // namespace
}  // namespace troupe::engine::parallel
