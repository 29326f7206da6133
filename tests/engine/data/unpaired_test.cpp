// Unpaired preference data: rows with labels, pairs that give two examples, and the mismatched
// batch on which KTO estimates its KL.
#include "engine/data/layouts/unpaired.h"

#include <gmock/gmock.h>

#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset<UnpairedExample> loaded(const std::string& rows, std::int64_t max_length = 0) {
  Scratch scratch;
  DataOptions options{.paths = {scratch.write("rows.jsonl", rows)}};
  options.encode.max_length = max_length;
  return value_or_throw(load<UnpairedExample>(options, ByteEncoder()));
}

std::string refused_rows(const std::string& rows) {
  Scratch scratch;
  const auto data = load<UnpairedExample>(DataOptions{.paths = {scratch.write("rows.jsonl", rows)}},
                                          ByteEncoder());
  return data ? "" : data.error().what;
}

Batch<UnpairedExample> all_of(const Dataset<UnpairedExample>& data) {
  Batch<UnpairedExample> batch;
  for (const auto& example : data.examples) {
    batch.examples.push_back(&example);
    batch.ids.push_back(batch.ids.size());
  }
  return batch;
}

std::string text_of(const Experience& b, std::size_t n) {
  return text_of_ids({b.tokens.begin() + b.offsets[n], b.tokens.begin() + b.offsets[n + 1]});
}

const std::string three_rows = R"({"prompt":"a:","completion":"yes","label":true}
{"prompt":"bb:","completion":"no","label":false}
{"prompt":"c:","completion":"well","label":1}
)";

TEST(Unpaired, RowsAreCutBetweenPromptAndAnswer) {
  const auto data = loaded(three_rows);
  ASSERT_EQ(data.examples.size(), 3u);
  EXPECT_EQ(data.report.layout, Layout::prompt_completion);
  EXPECT_EQ(text_of_ids(data.examples[1].prompt), "<s>bb:");
  EXPECT_EQ(text_of_ids(data.examples[1].answer), "no<eos>");
  EXPECT_EQ(data.examples[1].weights, std::vector<float>(3, 1.0f));
  EXPECT_TRUE(data.examples[0].desirable && !data.examples[1].desirable &&
              data.examples[2].desirable);
}

TEST(Unpaired, APairIsAGoodAnswerAndABadOne) {
  const auto data = loaded(R"({"prompt":"q:","chosen":"good","rejected":"bad"})");
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(text_of_ids(data.examples[0].answer), "good<eos>");
  EXPECT_EQ(text_of_ids(data.examples[1].answer), "bad<eos>");
  EXPECT_TRUE(data.examples[0].desirable && !data.examples[1].desirable);
}

TEST(Unpaired, RowsOfTokenIdsHaveALabelToo) {
  const auto data = loaded(R"({"input_ids":[5,6,7],"labels":[-100,6,7],"label":false})");
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_THAT(data.examples[0].prompt, ElementsAre(5));
  EXPECT_THAT(data.examples[0].answer, ElementsAre(6, 7));
  EXPECT_FALSE(data.examples[0].desirable);
}

TEST(Unpaired, ABatchHasOneSequenceAnExample) {
  const auto data = loaded(three_rows);
  const auto b = to_experience(all_of(data), 0);
  EXPECT_EQ(b.sequences(), 3);
  EXPECT_EQ(b.count, 3);
  EXPECT_THAT(b.label, ElementsAre(1.0f, 0.0f, 1.0f));
  EXPECT_EQ(text_of(b, 2), "<s>c:well<eos>");
  EXPECT_THAT(std::vector<float>(b.mask.begin(), b.mask.begin() + b.offsets[1]),
              ElementsAre(0, 0, 0, 1, 1, 1, 1));
}

TEST(Unpaired, MismatchedPromptsHaveTheAnswerOfTheExampleBefore) {
  const auto data = loaded(three_rows);
  const auto b = mismatched(all_of(data), 0);
  EXPECT_EQ(text_of(b, 0), "<s>a:well<eos>");
  EXPECT_EQ(text_of(b, 1), "<s>bb:yes<eos>");
  EXPECT_EQ(text_of(b, 2), "<s>c:no<eos>");
  Batch<UnpairedExample> one;
  one.examples.push_back(&data.examples[0]);
  one.ids.push_back(0);
  EXPECT_EQ(mismatched(one, 0).sequences(), 0);
}

TEST(Unpaired, AnswersAreCutToTheMaximumLengthBehindWhateverPromptTheyStand) {
  const auto data = loaded(three_rows, 6);
  EXPECT_EQ(data.report.truncated, 3);
  EXPECT_EQ(text_of(to_experience(all_of(data), 6), 2), "<s>c:wel");
  EXPECT_EQ(text_of(mismatched(all_of(data), 6), 1), "<s>bb:ye");
  EXPECT_EQ(loaded(three_rows, 4).report.untrainable, 1);  // "<s>bb:" leaves no room
}

TEST(Unpaired, RowsWithoutAUsableLabelAreNamedWithFileLineKeyExpectedAndFound) {
  const std::string good = R"({"prompt":"a","completion":"b","label":true})";
  EXPECT_THAT(refused_rows(good + "\n" + R"({"prompt":"a","completion":"b","label":"good"})"),
              AllOf(HasSubstr("rows.jsonl"), HasSubstr("2"), HasSubstr("\"label\""),
                    HasSubstr("true"), HasSubstr("\"good\"")));
  EXPECT_THAT(refused_rows(good + "\n" + R"({"prompt":"a","completion":"b"})"),
              HasSubstr("found nothing"));
  EXPECT_THAT(refused_rows(R"({"prompt":"a","completion":"b"})"),
              HasSubstr("label or kto_tag (true: a good answer) with prompt, completion"));
  EXPECT_THAT(refused_rows(R"({"input_ids":[5,6],"label":true})"), HasSubstr("no prompt"));
}

}  // namespace
}  // namespace troupe::engine::data
