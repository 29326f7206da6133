#include "engine/parallel/grid.h"

#include <gmock/gmock.h>

#include "engine/parallel/shard.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The communicator as its owner would hold it, for a rank that on_ranks() lends.
std::unique_ptr<Communicator> whole(Communicator& group) {
  return group.split(0, group.rank());
}

TEST(Grid, TpVariesFastest) {
  test::on_ranks(8, [&](Communicator& group) {
    const auto mesh = Mesh::create(whole(group), {.dp = 2, .tp = 4});
    ASSERT_TRUE(mesh);
    EXPECT_EQ(mesh->coordinates().dp, group.rank() / 4);
    EXPECT_EQ(mesh->coordinates().tp, group.rank() % 4);
    EXPECT_EQ(mesh->is_root(), group.rank() == 0);
    int ranks[8];
    const int mine = group.rank();
    const auto gathered = [&](Communicator& part) {
      part.all_gather(std::as_bytes(std::span(&mine, 1)),
                      std::as_writable_bytes(std::span(ranks, part.size())), "ranks of a part");
      return std::vector<int>(ranks, ranks + part.size());
    };
    const int row = 4 * (mine / 4), column = mine % 4;
    EXPECT_EQ(gathered(mesh->tp()), (std::vector<int>{row, row + 1, row + 2, row + 3}));
    EXPECT_EQ(gathered(mesh->dp()), (std::vector<int>{column, column + 4}));
    EXPECT_EQ(mesh->world().size(), 8);
  });
}

TEST(Grid, CpVariesAfterTpAndBeforeDp) {
  test::on_ranks(16, [&](Communicator& group) {
    const auto mesh = Mesh::create(whole(group), {.dp = 2, .tp = 2, .pp = 2, .cp = 2});
    ASSERT_TRUE(mesh);
    const auto [dp, tp, pp, cp] = mesh->coordinates();
    EXPECT_EQ(((pp * 2 + dp) * 2 + cp) * 2 + tp, group.rank());
    EXPECT_EQ(mesh->cp().rank(), cp);
    EXPECT_EQ(mesh->dp().rank(), dp);
    EXPECT_EQ(mesh->pp().rank(), pp);
    EXPECT_EQ(mesh->replicas().size(), 4);
    EXPECT_EQ(mesh->replicas().rank(), 2 * dp + cp);
  });
}

TEST(Grid, StagesVaryBeforeDpWhereTheOrderSaysSo) {
  const Grid grid{.dp = 2, .tp = 2, .pp = 2, .cp = 2, .order = AxisOrder::tp_cp_pp_dp};
  test::on_ranks(16, [&](Communicator& group) {
    const auto mesh = Mesh::create(whole(group), grid);
    ASSERT_TRUE(mesh);
    const auto [dp, tp, pp, cp] = mesh->coordinates();
    EXPECT_EQ(((dp * 2 + pp) * 2 + cp) * 2 + tp, group.rank());
    EXPECT_EQ(mesh->tp().rank(), tp);
    EXPECT_EQ(mesh->cp().rank(), cp);
    EXPECT_EQ(mesh->dp().rank(), dp);
    EXPECT_EQ(mesh->pp().rank(), pp);
    EXPECT_EQ(mesh->replicas().rank(), 2 * dp + cp);
    int stages[2];
    const int mine = group.rank();
    mesh->pp().all_gather(std::as_bytes(std::span(&mine, 1)),
                          std::as_writable_bytes(std::span(stages)), "ranks of the stages");
    EXPECT_EQ(stages[1] - stages[0], 4) << "the stages of a replica are neighbours";
  });
}

TEST(Grid, AProductOtherThanTheRanksIsRefusedWithWhatFits) {
  test::on_ranks(4, [&](Communicator& group) {
    const auto mesh = Mesh::create(whole(group), {.dp = 2, .tp = 3});
    ASSERT_FALSE(mesh);
    EXPECT_EQ(mesh.error().code, Errc::usage);
    EXPECT_THAT(mesh.error().what, AllOf(HasSubstr("dp 2 x tp 3 does not match the 4 ranks"),
                                         HasSubstr("dp 4 x tp 1, dp 2 x tp 2, dp 1 x tp 4")));
  });
  for (const Grid wrong : {Grid{0, 4}, Grid{-2, -2}, Grid{1 << 30, 1 << 30}, Grid{65536, 65536}})
    EXPECT_FALSE(check_fits(wrong, 4)) << to_string(wrong);
  EXPECT_TRUE(check_fits({.dp = 4}, 4));
}

TEST(Grid, AMeshOfOneNeedsNoGroup) {
  const Mesh mesh;
  EXPECT_EQ(mesh.grid(), Grid());
  EXPECT_TRUE(mesh.is_root());
  EXPECT_EQ(mesh.world().size() + mesh.tp().size() + mesh.dp().size(), 3);
}

TEST(Shard, EvenRangesCoverAllOnceAndDifferByOneAtMost) {
  for (const std::int64_t full : {0, 1, 5, 64, 151937})
    for (const std::int64_t parts : {1, 2, 3, 7, 64}) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range range = even_range(full, i, parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), full / parts);
        EXPECT_LE(range.size(), full / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, full);
    }
}

}  // namespace
}  // namespace troupe::engine::parallel
