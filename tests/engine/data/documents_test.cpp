// Documents longer than train.max_length: split without loss, or truncated with a count of what is
// lost.
#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;

DataOptions options_of(const std::string& path, std::int64_t max_length, bool chunk) {
  DataOptions options{.paths = {path}};
  options.encode.max_length = max_length;
  options.encode.chunk = chunk;
  return options;
}

std::string document(std::size_t letters) {
  std::string out;
  for (std::size_t i = 0; i < letters; ++i) out += static_cast<char>('c' + i % 20);
  return out;
}

TEST(Documents, AreSplitSoThatEachTokenIsTrainedOnOnce) {
  Scratch scratch;
  const ByteEncoder encoder;
  for (const std::size_t letters : {1, 5, 6, 7, 8, 9, 13, 14, 15, 100}) {
    const auto path = scratch.write("a.jsonl", cat("{\"text\":\"", document(letters), "\"}\n"));
    const auto whole = value_or_throw(load<SftExample>(options_of(path, 0, true), encoder));
    const auto split = value_or_throw(load<SftExample>(options_of(path, 8, true), encoder));
    ASSERT_EQ(whole.examples.size(), 1u);
    std::string trained;
    for (const auto& piece : split.examples) {
      EXPECT_LE(piece.ids.size(), 8u);
      EXPECT_GE(piece.ids.size(), 2u);
      trained += text_of_ids(piece.ids, &piece.weights);
    }
    EXPECT_EQ(trained, text_of_ids(whole.examples[0].ids, &whole.examples[0].weights)) << letters;
    EXPECT_EQ(split.report.used(), 1);
    EXPECT_EQ(split.report.truncated, 0);
    EXPECT_EQ(split.report.chunks, letters + 2 <= 8 ? 0 : std::ssize(split.examples));
  }
}

TEST(Documents, AllPiecesButTheLastAreFull) {
  Scratch scratch;
  const auto path = scratch.write("a.txt", document(40));
  const auto data = value_or_throw(load<SftExample>(options_of(path, 8, true), ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 6u);  // 42 tokens: 8, then 7 new ones a piece
  for (std::size_t i = 0; i + 1 < 6; ++i) EXPECT_EQ(data.examples[i].ids.size(), 8u);
  EXPECT_EQ(text_of_ids(data.examples.back().ids), "qrstuv<eos>");
  EXPECT_THAT(data.report.text(), HasSubstr("1 of them split into 6 examples"));
}

TEST(Documents, AreTruncatedWithoutChunksAndTheLossIsCounted) {
  Scratch scratch;
  const auto path = scratch.write("a.jsonl", cat("{\"text\":\"", document(100), "\"}\n"));
  const auto data = value_or_throw(load<SftExample>(options_of(path, 8, false), ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(data.report.cut_tokens, 94);
  EXPECT_THAT(data.report.text(),
              HasSubstr("1 of them truncated to train.max_length (94 tokens lost)"));
}

TEST(Documents, OfOtherLayoutsAreNeverSplit) {
  Scratch scratch;
  const auto path =
      scratch.write("a.jsonl", cat("{\"prompt\":\"q\",\"completion\":\"", document(50), "\"}\n"));
  const auto data = value_or_throw(load<SftExample>(options_of(path, 8, true), ByteEncoder()));
  EXPECT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(data.report.truncated, 1);
}

TEST(Documents, AStreamHasTheSamePiecesAndContinuesWithinADocument) {
  Scratch scratch;
  std::string text;
  for (int i = 0; i < 9; ++i) text += document(10 + 17 * static_cast<std::size_t>(i)) + "\n";
  const auto options = options_of(scratch.write("a.txt", text), 8, true);
  const ByteEncoder encoder;
  const LoaderOptions memory{.batch_size = 5, .seed = 3},
      stream{.batch_size = 5, .seed = 3, .stream_rows = 10000},
      blocks{.batch_size = 5, .seed = 3, .stream_rows = 4};
  const auto ids = [&](const LoaderOptions& loader, bool interrupted) {
    std::vector<std::vector<std::int32_t>> out;
    auto data = value_or_throw(make_loader<SftExample>(options, encoder, loader));
    for (int i = 0; i < 40; ++i) {
      const auto batch = data.next();
      for (const auto* example : batch->examples) out.push_back(example->ids);
      if (!interrupted) continue;
      const Json state = data.state();
      data = value_or_throw(make_loader<SftExample>(options, encoder, loader));
      value_or_throw(data.restore(state));
    }
    return out;
  };
  EXPECT_EQ(ids(memory, false), ids(stream, false));
  EXPECT_EQ(ids(blocks, false), ids(blocks, true));
}

}  // namespace
}  // namespace troupe::engine::data
