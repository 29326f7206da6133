#include "engine/data/loader/loader.h"

#include <gmock/gmock.h>

#include <set>

#include "engine/base/json/fields.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// `size` examples; example i is the tokens {i, i}.
Dataset<SftExample> numbered(int size, std::string hash = "00") {
  Dataset<SftExample> data;
  for (int i = 0; i < size; ++i) data.examples.push_back({.ids = {i, i}, .weights = {0, 1}});
  data.files.push_back({"folder/rows.jsonl", 100, std::move(hash)});
  return data;
}

std::vector<std::int32_t> indices(const Batch<SftExample>& batch) {
  std::vector<std::int32_t> out;
  for (const auto* example : batch.examples) out.push_back(example->ids[0]);
  return out;
}

std::vector<std::int32_t> take(Loader<SftExample>& loader, int batches) {
  std::vector<std::int32_t> out;
  for (int b = 0; b < batches; ++b)
    for (const auto i : indices(*loader.next())) out.push_back(i);
  return out;
}

TEST(Loader, WithoutShuffleKeepsTheOrderOfTheFile) {
  Loader<SftExample> loader(numbered(5), {.batch_size = 2, .shuffle = false});
  EXPECT_EQ(take(loader, 4), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 0, 1, 2}));
}

TEST(Loader, AnEpochHasEveryExampleOnceAndTheNextOneAnotherOrder) {
  Loader<SftExample> loader(numbered(50), {.batch_size = 10, .seed = 3});
  const auto first = take(loader, 5), second = take(loader, 5);
  EXPECT_EQ(std::set<std::int32_t>(first.begin(), first.end()).size(), 50u);
  EXPECT_EQ(std::set<std::int32_t>(second.begin(), second.end()).size(), 50u);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  Loader<SftExample> same(numbered(50), {.batch_size = 10, .seed = 3}),
      other(numbered(50), {.batch_size = 10, .seed = 4});
  EXPECT_EQ(take(same, 5), first);
  EXPECT_NE(take(other, 5), first);
}

TEST(Loader, TheOrderDoesNotDependOnTheBatchSize) {
  Loader<SftExample> one(numbered(7), {.batch_size = 1, .seed = 1}),
      three(numbered(7), {.batch_size = 3, .seed = 1});
  EXPECT_EQ(take(one, 21), take(three, 7));
}

TEST(Loader, EpochsEndWithAShortBatch) {
  Loader<SftExample> loader(numbered(5), {.batch_size = 4, .epochs = 2});
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(loader.next()->examples.size(), 4u);
  EXPECT_EQ(loader.next()->examples.size(), 4u);
  EXPECT_EQ(loader.next()->examples.size(), 2u);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

// 10 rows in batches of 4: sizes of the batches of two and a half epochs, and of a whole run.
TEST(Loader, LastBatchOfAnEpochIsJoinedKeptOrDropped) {
  struct Expected {
    LastBatch last_batch;
    double epochs;
    std::vector<std::size_t> sizes;
  };
  for (const Expected& each : {
           Expected{LastBatch::join, 2, {4, 4, 4, 4, 4}},
           Expected{LastBatch::join, 1, {4, 4, 2}},
           Expected{LastBatch::keep, 2, {4, 4, 2, 4, 4, 2}},
           Expected{LastBatch::keep, 1.5, {4, 4, 2, 4, 4}},  // half of three batches, rounded up
           Expected{LastBatch::keep, 1.1, {4, 4, 2, 4}},
           Expected{LastBatch::drop, 2, {4, 4, 4, 4}},
           Expected{LastBatch::drop, 1.5, {4, 4, 4}},
       }) {
    const LoaderOptions options{
        .batch_size = 4, .epochs = each.epochs, .shuffle = false, .last_batch = each.last_batch};
    Loader<SftExample> loader(numbered(10), options);
    EXPECT_EQ(loader.batches(), std::ssize(each.sizes));
    std::vector<std::size_t> sizes;
    while (const auto batch = loader.next()) {
      sizes.push_back(batch->ids.size());
      Loader<SftExample> resumed(numbered(10), options);
      ASSERT_TRUE(resumed.restore(loader.state()));
      EXPECT_EQ(resumed.state().dump(), loader.state().dump());
    }
    EXPECT_EQ(sizes, each.sizes) << name_of(each.last_batch) << ' ' << each.epochs;
  }
}

TEST(Loader, ABatchHasEveryExampleAtMostOnce) {
  Loader<SftExample> loader(numbered(10), {.batch_size = 1000, .seed = 3});
  EXPECT_EQ(loader.batch_size(), 10);
  for (int step = 0; step < 3; ++step) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(std::set(batch->examples.begin(), batch->examples.end()).size(), 10u);
    EXPECT_EQ(batch->ids.size(), 10u);
  }
}

TEST(Loader, IdsAreStableAndNeverTwice) {
  Loader<SftExample> loader(numbered(5), {.batch_size = 5});
  std::set<std::uint64_t> seen;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto batch = *loader.next();
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(seen.insert(batch.ids[i]).second);
      EXPECT_EQ(static_cast<std::int32_t>(batch.ids[i] % 5), batch.examples[i]->ids[0]);
    }
  }
}

TEST(Loader, ResumedAnywhereContinuesAsIfUndisturbed) {
  for (const bool shuffle : {false, true}) {
    const LoaderOptions options{.batch_size = 3, .shuffle = shuffle, .seed = 11};
    Loader<SftExample> whole(numbered(7), options);
    const auto expected = take(whole, 20);
    for (int stop = 0; stop <= 20; ++stop) {
      Loader<SftExample> before(numbered(7), options), after(numbered(7), options);
      auto order = take(before, stop);
      // Through text, as a checkpoint has it.
      const auto state = value_or_throw(parse_json(before.state().dump(), "state"));
      const auto restored = after.restore(state);
      ASSERT_TRUE(restored) << restored.error().what;
      const auto rest = take(after, 20 - stop);
      order.insert(order.end(), rest.begin(), rest.end());
      EXPECT_EQ(order, expected) << stop;
    }
  }
}

TEST(Loader, AFinishedRunStaysFinishedWhenResumed) {
  const LoaderOptions options{.batch_size = 3, .epochs = 1};
  Loader<SftExample> before(numbered(6), options), after(numbered(6), options);
  while (before.next()) {
  }
  ASSERT_TRUE(after.restore(before.state()));
  EXPECT_FALSE(after.next());
}

TEST(Loader, ChangedDataIsRefusedByItsName) {
  Loader<SftExample> before(numbered(7, "aa"), {}), after(numbered(7, "bb"), {});
  const auto restored = after.restore(before.state());
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().what,
              AllOf(HasSubstr("folder/rows.jsonl has changed"), HasSubstr("aa"), HasSubstr("bb")));
}

TEST(Loader, AnotherOrderIsRefusedWithBothValues) {
  Loader<SftExample> before(numbered(7), {.seed = 1});
  const auto state = before.state();
  const auto why = [&](Dataset<SftExample> data, LoaderOptions options) {
    const auto restored = Loader<SftExample>(std::move(data), options).restore(state);
    return restored ? std::string() : restored.error().what;
  };
  EXPECT_EQ(why(numbered(7), {.seed = 1}), "");
  EXPECT_EQ(why(numbered(7), {.batch_size = 3, .seed = 1}), "");
  EXPECT_THAT(why(numbered(7), {.seed = 2}), HasSubstr("was 1, now it is 2"));
  EXPECT_THAT(why(numbered(7), {.shuffle = false, .seed = 1}),
              HasSubstr("data.shuffle was true, now it is false"));
  EXPECT_THAT(why(numbered(6), {.seed = 1}), HasSubstr("7 examples, now 6"));
  auto two = numbered(7);
  two.files.push_back(two.files[0]);
  EXPECT_THAT(why(std::move(two), {.seed = 1}), HasSubstr("1 data files, now there are 2"));
}

TEST(Loader, ADamagedStateIsRefused) {
  Loader<SftExample> loader(numbered(7), {});
  const auto good = loader.state();
  ASSERT_TRUE(loader.restore(good));
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"position", Json(8)},
                                                                            {"position", Json(-1)},
                                                                            {"position", Json("1")},
                                                                            {"epoch", Json(-1)},
                                                                            {"epoch", Json()},
                                                                            {"files", Json()},
                                                                            {"seed", Json(7)}}) {
    auto state = good;
    state.set(key, value);
    EXPECT_FALSE(loader.restore(state)) << key << value.dump();
  }
  EXPECT_FALSE(loader.restore(Json()));
  EXPECT_FALSE(loader.restore(Json(3)));
}

TEST(Experiences, OfRowsCountTheTokensThatAreTrainedOn) {
  Dataset<SftExample> data;
  data.examples = {{.ids = {1, 2, 3}, .weights = {0, 0, 1}}, {.ids = {4, 5}, .weights = {1, 1}}};
  Loader<SftExample> loader(std::move(data), {.batch_size = 2, .shuffle = false});
  const auto batch = to_experience(*loader.next());
  EXPECT_EQ(batch.offsets, (std::vector<std::int32_t>{0, 3, 5}));
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(batch.mask, (std::vector<float>{0, 0, 1, 0, 1}));  // a first token has no probability
  EXPECT_EQ(batch.count, 2);
  EXPECT_EQ(batch.sequences_per_group, 1);
  EXPECT_EQ(batch.sample_id, (std::vector<std::uint64_t>{0, 1}));
  batch.validate(6);
}

TEST(Experiences, OfPairsStandChosenThenRejected) {
  Dataset<PairExample> data;
  data.examples = {{{.ids = {1, 2}, .weights = {0, 1}}, {.ids = {1, 3}, .weights = {0, 1}}},
                   {{.ids = {4, 5}, .weights = {0, 1}}, {.ids = {4, 6}, .weights = {0, 1}}}};
  Loader<PairExample> loader(std::move(data), {.batch_size = 2, .shuffle = false});
  const auto batch = to_experience(*loader.next());
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{1, 2, 1, 3, 4, 5, 4, 6}));
  EXPECT_EQ(batch.sequences_per_group, 2);
  EXPECT_EQ(batch.count, 2);
  EXPECT_EQ(batch.sample_id, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  batch.validate(7);
}

}  // namespace
}  // namespace troupe::engine::data
