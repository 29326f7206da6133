// data.max_samples, data.split and fractional epochs: which rows are used, and that a resumed
// loader uses the same ones.
#include <gmock/gmock.h>

#include <set>

#include "engine/base/text/text.h"
#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Rows "aa", "bb", ... without the letters that ByteEncoder joins.
std::string rows(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += cat("{\"prompt\":\"", i, "\",\"completion\":\"!\"}\n");
  return out;
}

std::vector<int> numbers(const Dataset<SftExample>& data) {
  std::vector<int> out;
  for (const auto& example : data.examples)
    out.push_back(std::stoi(text_of_ids(example.ids).substr(3)));
  return out;
}

std::vector<std::int64_t> held_out_rows(std::int64_t count, double split, std::uint64_t seed) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i)
    if (is_held_out(i, split, seed)) out.push_back(i);
  return out;
}

TEST(Split, HoldsOutExactlyOneOfEveryFewRows) {
  for (const double split : {0.1, 0.05, 0.5, 0.3, 0.9}) {
    const auto rows_held = held_out_rows(1000, split, 7);
    EXPECT_NEAR(static_cast<double>(rows_held.size()), 1000 * split, 1) << split;
  }
  const auto tenth = held_out_rows(1000, 0.1, 7);
  for (std::size_t k = 0; k < tenth.size(); ++k)
    EXPECT_EQ(tenth[k] / 10, static_cast<std::int64_t>(k));
  std::set<std::int64_t> places;
  for (const auto row : tenth) places.insert(row % 10);
  EXPECT_GT(places.size(), 5u) << "the place within ten rows is random";
}

TEST(Split, DependsOnTheSeedAndTheRowAlone) {
  EXPECT_EQ(held_out_rows(500, 0.1, 7), held_out_rows(500, 0.1, 7));
  EXPECT_NE(held_out_rows(500, 0.1, 7), held_out_rows(500, 0.1, 8));
  const auto few = held_out_rows(100, 0.1, 7), more = held_out_rows(500, 0.1, 7);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
  EXPECT_TRUE(held_out_rows(100, 0, 7).empty());
}

TEST(Split, TheTwoPartsAreAllRowsOfAllFilesOnce) {
  Scratch scratch;
  DataOptions options{
      .paths = {scratch.write("a.jsonl", rows(33)), scratch.write("b.jsonl", rows(17))}};
  options.selection = {.split = 0.2, .seed = 3};
  const auto trained = value_or_throw(load<SftExample>(options, ByteEncoder()));
  options.selection.held_out = true;
  const auto held_out = value_or_throw(load<SftExample>(options, ByteEncoder()));
  EXPECT_EQ(trained.examples.size(), 40u);
  EXPECT_EQ(held_out.examples.size(), 10u);
  EXPECT_EQ(trained.report.rows, 50);
  EXPECT_EQ(trained.report.held_out, 10);
  EXPECT_THAT(trained.report.text(),
              AllOf(HasSubstr("40 used"), HasSubstr("10 held out by data.split")));
  EXPECT_THAT(held_out.report.text(), HasSubstr("10 rows read"));
  auto all = numbers(trained);
  for (const int number : numbers(held_out)) all.push_back(number);
  std::sort(all.begin(), all.end());
  std::vector<int> expected;
  for (int i = 0; i < 33; ++i) expected.insert(expected.end(), i < 17 ? 2 : 1, i);
  EXPECT_EQ(all, expected);
}

TEST(Split, ThatHoldsOutNothingIsRefused) {
  Scratch scratch;
  DataOptions options{.paths = {scratch.write("a.jsonl", rows(3))}};
  options.selection = {.split = 0.001, .held_out = true};
  const auto data = load<SftExample>(options, ByteEncoder());
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what, HasSubstr("data.split = 0.001 holds out no usable row"));
}

TEST(MaxSamples, AreTheFirstRowsOfEachSource) {
  Scratch scratch;
  const auto a = scratch.write("a.jsonl", rows(5)), b = scratch.write("b.jsonl", rows(5));
  DataOptions options{.paths = {a, b}};
  options.selection.first_rows = 7;
  EXPECT_EQ(numbers(value_or_throw(load<SftExample>(options, ByteEncoder()))),
            (std::vector<int>{0, 1, 2, 3, 4, 0, 1}));
  options = {.mix = {{.paths = {a}}, {.paths = {b}}}};
  options.selection.first_rows = 2;
  EXPECT_EQ(numbers(value_or_throw(load<SftExample>(options, ByteEncoder()))),
            (std::vector<int>{0, 1, 0, 1}));
}

// The ids of the batches of a whole run, where the loader is made anew and restored after each.
std::vector<std::vector<std::int32_t>> batches_of(const DataOptions& options,
                                                  const LoaderOptions& loader, std::size_t count,
                                                  bool interrupted) {
  const ByteEncoder encoder;
  std::vector<std::vector<std::int32_t>> out;
  auto data = value_or_throw(make_loader<SftExample>(options, encoder, loader));
  while (out.size() < count) {
    const auto batch = data.next();
    if (!batch) break;
    std::vector<std::int32_t> ids;
    for (const auto* example : batch->examples)
      ids.insert(ids.end(), example->ids.begin(), example->ids.end());
    out.push_back(ids);
    if (!interrupted) continue;
    const Json state = data.state();
    data = value_or_throw(make_loader<SftExample>(options, encoder, loader));
    value_or_throw(data.restore(state));
  }
  return out;
}

TEST(MaxSamples, AndASplitGoOnAfterAnyBatch) {
  Scratch scratch;
  DataOptions options{
      .paths = {scratch.write("a.jsonl", rows(30)), scratch.write("b.jsonl", rows(30))}};
  options.selection = {.first_rows = 50, .split = 0.2, .seed = 5};
  for (const std::int64_t stream_rows : {0, 7, 1000}) {
    const LoaderOptions loader{.batch_size = 4, .seed = 5, .stream_rows = stream_rows};
    EXPECT_EQ(batches_of(options, loader, 25, true), batches_of(options, loader, 25, false))
        << stream_rows;
  }
  const LoaderOptions memory{.batch_size = 4, .seed = 5},
      stream{.batch_size = 4, .seed = 5, .stream_rows = 1000};
  EXPECT_EQ(batches_of(options, memory, 25, false), batches_of(options, stream, 25, false));
}

TEST(MaxSamples, AStreamThatBeganWithoutThemIsNotResumed) {
  Scratch scratch;
  DataOptions options{.paths = {scratch.write("a.jsonl", rows(30))}};
  const ByteEncoder encoder;
  const LoaderOptions loader{.batch_size = 4, .stream_rows = 8};
  auto data = value_or_throw(make_loader<SftExample>(options, encoder, loader));
  data.next();
  const Json state = data.state();
  options.selection.first_rows = 9;
  auto other = value_or_throw(make_loader<SftExample>(options, encoder, loader));
  const auto restored = other.restore(state);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().what, HasSubstr("data.max_samples"));
}

TEST(Epochs, MayBeAFraction) {
  Scratch scratch;
  const DataOptions options{.paths = {scratch.write("a.jsonl", rows(20))}};
  const auto steps = [&](double epochs, bool interrupted = false) {
    return batches_of(options, {.batch_size = 4, .epochs = epochs, .seed = 1}, 100, interrupted);
  };
  EXPECT_EQ(steps(0.5).size(), 3u);  // 10 rows
  EXPECT_LT(steps(0.5).back().size(), steps(0.5).front().size());
  EXPECT_EQ(steps(1.5).size(), 8u);
  EXPECT_EQ(steps(0.001).size(), 1u);
  EXPECT_EQ(steps(1.5, true), steps(1.5));
  const auto whole = steps(1), half = steps(0.5);
  EXPECT_EQ(half[0], whole[0]);
}

}  // namespace
}  // namespace troupe::engine::data
