// Several sources drawn from by weight.
#include <gmock/gmock.h>

#include <set>

#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;

// Example i is the tokens {i, i}; `parts` assigns examples to sources.
Dataset<SftExample> mixed(const std::vector<SourceInfo>& parts) {
  Dataset<SftExample> data;
  data.sources = parts;
  for (const auto& part : parts)
    for (std::size_t i = 0; i < part.size; ++i) {
      const auto number = static_cast<std::int32_t>(data.examples.size());
      data.examples.push_back({.ids = {number, number}, .weights = {0, 1}});
    }
  return data;
}

std::vector<std::int32_t> first_ids(Loader<SftExample>& loader, int batches) {
  std::vector<std::int32_t> out;
  for (int b = 0; b < batches; ++b) {
    const auto batch = loader.next();
    if (!batch) break;
    for (const auto* example : batch->examples) out.push_back(example->ids[0]);
  }
  return out;
}

TEST(Mix, DrawsStayWithinOneOfTheWeights) {
  Loader<SftExample> loader(
      mixed({{.size = 10, .weight = 3}, {.size = 50, .weight = 1}, {.size = 5, .weight = 0.5}}),
      {.batch_size = 1});
  std::vector<double> drawn(3);
  for (int n = 1; n <= 900; ++n) {
    const auto one = first_ids(loader, 1)[0];
    drawn[one < 10 ? 0 : one < 60 ? 1 : 2] += 1;
    EXPECT_NEAR(drawn[0], n * 3 / 4.5, 1.01);
    EXPECT_NEAR(drawn[1], n * 1 / 4.5, 1.01);
    EXPECT_NEAR(drawn[2], n * 0.5 / 4.5, 1.01);
  }
}

TEST(Mix, EachSourceComesWholeBeforeItComesAgain) {
  Loader<SftExample> loader(mixed({{.size = 4, .weight = 1}, {.size = 6, .weight = 1}}),
                            {.batch_size = 12, .seed = 3});
  std::vector<std::int32_t> small;
  for (const auto one : first_ids(loader, 2))
    if (one < 4) small.push_back(one);
  ASSERT_EQ(small.size(), 12u);
  for (std::size_t pass = 0; pass < 3; ++pass)
    EXPECT_EQ(std::set<std::int32_t>(small.begin() + static_cast<std::ptrdiff_t>(4 * pass),
                                     small.begin() + static_cast<std::ptrdiff_t>(4 * pass + 4))
                  .size(),
              4u);
}

TEST(Mix, ASourceGivesNoMoreAfterItsEpochs) {
  Loader<SftExample> loader(
      mixed({{.size = 4, .weight = 5, .epochs = 2}, {.size = 6, .weight = 1}}), {.batch_size = 10});
  const auto drawn = first_ids(loader, 5);
  EXPECT_EQ(std::count_if(drawn.begin(), drawn.end(), [](auto one) { return one < 4; }), 8);
  EXPECT_EQ(loader.batches(), 0);
  Loader<SftExample> ending(
      mixed({{.size = 4, .weight = 5, .epochs = 2}, {.size = 6, .weight = 1, .epochs = 1}}),
      {.batch_size = 10});
  EXPECT_EQ(ending.batches(), 2);
  EXPECT_EQ(first_ids(ending, 9).size(), 14u);
}

TEST(Mix, AnEpochHasAsManyDrawsAsThereAreRows) {
  Loader<SftExample> loader(mixed({{.size = 4, .weight = 5}, {.size = 6, .weight = 1}}),
                            {.batch_size = 4, .epochs = 2});
  EXPECT_EQ(loader.batches(), 5);
  EXPECT_EQ(first_ids(loader, 99).size(), 20u);
}

TEST(Mix, ResumedAnywhereContinuesAsIfUndisturbed) {
  const std::vector<SourceInfo> parts = {
      {.size = 4, .weight = 2, .epochs = 3}, {.size = 6, .weight = 1}, {.size = 3, .weight = 0.3}};
  const LoaderOptions options{.batch_size = 3, .seed = 11};
  Loader<SftExample> whole(mixed(parts), options);
  const auto expected = first_ids(whole, 20);
  for (int stop = 0; stop <= 20; ++stop) {
    Loader<SftExample> before(mixed(parts), options), after(mixed(parts), options);
    auto order = first_ids(before, stop);
    const auto restored = after.restore(value_or_throw(parse_json(before.state().dump(), "state")));
    ASSERT_TRUE(restored) << restored.error().what;
    const auto rest = first_ids(after, 20 - stop);
    order.insert(order.end(), rest.begin(), rest.end());
    EXPECT_EQ(order, expected) << stop;
  }
}

TEST(Mix, AnotherMixIsRefusedWithBothValues) {
  Loader<SftExample> before(mixed({{.size = 4, .weight = 2}, {.size = 6}}), {});
  Loader<SftExample> after(mixed({{.size = 4, .weight = 3}, {.size = 6}}), {});
  EXPECT_THAT(
      after.restore(before.state()).error().what,
      HasSubstr("source 1 of the mix had 4 examples, weight 2 and epochs 0, now 4, 3 and 0"));
  Loader<SftExample> plain(mixed({{.size = 10}}), {});
  EXPECT_FALSE(plain.restore(before.state()));
  EXPECT_FALSE(after.restore(plain.state()));
}

TEST(Mix, SourcesMayHaveTheirOwnLayoutsAndColumns) {
  Scratch scratch;
  DataOptions options;
  options.mix.push_back(
      {.paths = {scratch.write("a.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n")},
       .weight = 2});
  options.mix.push_back({.paths = {scratch.write("b.csv", "q,a\nx,y\n")},
                         .columns = {{"question", "q"}, {"answer", "a"}}});
  const auto data = value_or_throw(load<SftExample>(options, ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 3u);
  EXPECT_EQ(text_of_ids(data.examples[2].ids), "<s>xy<eos>");
  EXPECT_EQ(data.sources, (std::vector<SourceInfo>{{2, 2, 0}, {1, 1, 0}}));
  EXPECT_EQ(data.files.size(), 2u);
  EXPECT_EQ(data.report.rows, 3);
}

}  // namespace
}  // namespace troupe::engine::data
