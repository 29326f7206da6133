// Rows of process reward models in both published forms, and the pairs of outcome reward models.
#include "engine/data/layouts/steps.h"

#include <gmock/gmock.h>

#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DataOptions labelled(const std::string& path, StepOptions steps = {}) {
  DataOptions options{.paths = {path}};
  options.encode.steps = std::move(steps);
  return options;
}

StepOptions plus_and_minus() {
  return {.tokens = value_or_throw(find_step_tokens("k", {"+", "-"}, ByteEncoder()))};
}

// The labelled tokens as "index:class".
std::vector<std::string> labelled_tokens(const StepExample& example) {
  std::vector<std::string> out;
  for (std::size_t t = 0; t < example.classes.size(); ++t)
    if (example.classes[t] >= 0)
      out.push_back(std::to_string(t) + ":" + std::to_string(example.classes[t]));
  return out;
}

std::string refusal(const std::string& rows, StepOptions steps = {}) {
  Scratch scratch;
  const auto data = load<StepExample>(labelled(scratch.write("rows.jsonl", rows), std::move(steps)),
                                      ByteEncoder());
  return data ? "" : data.error().what;
}

TEST(Steps, AreScoredAtTheLastTokenOfTheirSeparators) {
  Scratch scratch;
  const auto path = scratch.write(
      "rows.jsonl", R"({"prompt":"q","completions":["one","tw"],"labels":[true,false]})");
  const auto data = value_or_throw(load<StepExample>(labelled(path), ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(data.report.layout, Layout::steps);
  EXPECT_EQ(text_of_ids(data.examples[0].ids), "<s>qone\ntw\n");
  EXPECT_THAT(labelled_tokens(data.examples[0]), ElementsAre("5:1", "8:0"));
  const auto wide =
      value_or_throw(load<StepExample>(labelled(path, {.separator = " ##"}), ByteEncoder()));
  EXPECT_THAT(labelled_tokens(wide.examples[0]), ElementsAre("7:1", "12:0"));
}

TEST(Steps, OfWhichOnlyTheLastIsScoredOnRequest) {
  Scratch scratch;
  const auto path =
      scratch.write("rows.jsonl", R"({"prompt":"q","completions":["a","b","c"],"labels":[1,1,0]})");
  const auto data =
      value_or_throw(load<StepExample>(labelled(path, {.last_step_only = true}), ByteEncoder()));
  EXPECT_THAT(labelled_tokens(data.examples[0]), ElementsAre("7:0"));
}

TEST(Steps, BeyondTheMaximumLengthAreCutAndARowWithoutAnyIsLeftOut) {
  Scratch scratch;
  const auto path =
      scratch.write("rows.jsonl",
                    "{\"prompt\":\"q\",\"completions\":[\"a\",\"b\"],\"labels\":[1,0]}\n"
                    "{\"prompt\":\"a longer question\",\"completions\":[\"a\"],\"labels\":[1]}\n");
  auto options = labelled(path);
  options.encode.max_length = 5;
  const auto data = value_or_throw(load<StepExample>(options, ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(data.examples[0].cut_tokens, 1);
  EXPECT_THAT(labelled_tokens(data.examples[0]), ElementsAre("3:1"));
  EXPECT_EQ(data.report.untrainable, 1);
}

TEST(Steps, MalformedRowsAreNamedWithFileLineKeyExpectedAndFound) {
  EXPECT_THAT(
      refusal("{\"prompt\":\"q\",\"completions\":[\"a\",\"b\"],\"labels\":[true]}"),
      AllOf(HasSubstr("rows.jsonl:1"),
            HasSubstr(
                "as many labels as steps, found 1 under \"labels\" and 2 under \"completions\"")));
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":[\"a\"],\"labels\":[\"good\"]}"),
              AllOf(HasSubstr("\"labels\", item 0"), HasSubstr("found string")));
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":[\"a\"],\"labels\":[-1]}"),
              HasSubstr("found -1"));
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":[\"a\"],\"labels\":[2]}"),
              HasSubstr("a class from 0 to 1, found 2"));
  EXPECT_EQ(refusal("{\"prompt\":\"q\",\"completions\":[\"a\"],\"labels\":[2]}", {.classes = 3}),
            "");
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":[3],\"labels\":[1]}"),
              HasSubstr("\"completions\", item 0: expected text"));
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":\"a\",\"labels\":[1]}"),
              HasSubstr("found string"));
  EXPECT_THAT(refusal("{\"prompt\":\"q\",\"completions\":[],\"labels\":[]}"),
              HasSubstr("it has no step"));
  EXPECT_THAT(refusal("{\"prompt\":[],\"completions\":[\"a\"],\"labels\":[1]}"),
              HasSubstr("expected text under \"prompt\", found array"));
  EXPECT_THAT(
      refusal("{\"prompt\":\"q\",\"completions\":[\"\"],\"labels\":[1]}", {.separator = ""}),
      HasSubstr("no token for its label"));
  EXPECT_THAT(
      refusal("{\"text\":\"q\"}"),
      AllOf(HasSubstr("prompt, completions or steps, with labels"), HasSubstr("input, value")));
}

TEST(Steps, AreScoredAtTheirPlaceholders) {
  Scratch scratch;
  const auto path = scratch.write("rows.jsonl", R"({"input":"1+1 k so 3 k.","value":["+","-"]})");
  const auto data =
      value_or_throw(load<StepExample>(labelled(path, plus_and_minus()), ByteEncoder()));
  EXPECT_EQ(data.report.layout, Layout::placeholders);
  EXPECT_EQ(text_of_ids(data.examples[0].ids), "<s>1+1 k so 3 k.");
  EXPECT_THAT(labelled_tokens(data.examples[0]), ElementsAre("5:0", "12:1"));
}

TEST(Steps, WithPlaceholdersThatDoNotFitAreRefused) {
  const auto refused = [](const char* row) { return refusal(row, plus_and_minus()); };
  EXPECT_THAT(refused(R"({"input":"a k b k","value":["+"]})"),
              AllOf(HasSubstr("for each of the 1 under \"value\", found 2"),
                    HasSubstr("rows.jsonl:1"), HasSubstr("placeholder \"k\" (token 107)")));
  EXPECT_THAT(refused(R"({"input":"a","value":["+"]})"), HasSubstr("found 0"));
  EXPECT_THAT(refused(R"({"input":"a k","value":["good"]})"),
              AllOf(HasSubstr("\"value\", item 0"), HasSubstr("found \"good\"")));
  EXPECT_THAT(refused(R"({"input":"a k","value":[1]})"),
              HasSubstr("\"value\", item 0: expected text, found integer"));
  EXPECT_THAT(refused(R"({"input":"a k","value":"+"})"), HasSubstr("expected a list"));
  EXPECT_THAT(refused(R"({"input":["a k"],"value":["+"]})"),
              HasSubstr("expected text under \"input\", found array"));
}

TEST(Steps, TokensOfThePlaceholderFormAreSingleTokens) {
  const ByteEncoder encoder;
  EXPECT_EQ(value_or_throw(find_step_tokens("k", {"+", "ab"}, encoder)).reward_ids,
            (std::vector<std::int32_t>{'+', ByteEncoder::ab}));
  EXPECT_THAT(find_step_tokens("kk", {"+", "-"}, encoder).error().what,
              AllOf(HasSubstr("prm.placeholder"), HasSubstr("which is 2 tokens")));
  EXPECT_THAT(find_step_tokens("k", {"good", "bad"}, encoder).error().what,
              AllOf(HasSubstr("prm.reward_tokens"), HasSubstr("good")));
  EXPECT_THAT(find_step_tokens("k", {"+"}, encoder).error().what, HasSubstr("two or more"));
}

TEST(Steps, RowsOfTheOtherFormStopTheRunWithTheKeyToChange) {
  EXPECT_THAT(
      refusal("{\"prompt\":\"q\",\"completions\":[\"a\"],\"labels\":[1]}", plus_and_minus()),
      HasSubstr("prm.kind: token_class"));
  EXPECT_THAT(refusal("{\"input\":\"a k\",\"value\":[\"+\"]}"), HasSubstr("prm.kind: placeholder"));
}

TEST(Steps, ALayoutOfAnotherAlgorithmIsRefused) {
  Scratch scratch;
  auto options = labelled(scratch.write("rows.jsonl", "{\"text\":\"a\"}\n"));
  options.layout = Layout::text;
  EXPECT_THAT(load<StepExample>(options, ByteEncoder()).error().what,
              HasSubstr("auto, steps, placeholders, prm800k, found text"));
  options.layout = Layout::steps;
  EXPECT_FALSE(load<SftExample>(options, ByteEncoder()));
}

TEST(Steps, ABatchTrainsOnTheScoredTokensAlone) {
  StepExample first{{1, 2, 3}, {-1, 1, 0}}, second{{4, 5}, {-1, 1}};
  const Experience b = to_experience(Batch<StepExample>{{&first, &second}, {7, 8}});
  EXPECT_THAT(b.mask, ElementsAre(0, 1, 1, 0, 1));
  EXPECT_THAT(b.classes, ElementsAre(-1, 1, 0, -1, 1));
  EXPECT_THAT(b.sample_id, ElementsAre(7u, 8u));
  EXPECT_EQ(b.count, 3);
}

constexpr const char* pairs_with_margins =
    "{\"prompt\":\"q\",\"chosen\":\"yes\",\"rejected\":\"no\",\"margin\":0.5}\n"
    "{\"prompt\":\"q\",\"chosen\":\"y\",\"rejected\":\"a very long answer\"}\n"
    "{\"prompt\":\"q\",\"chosen\":\"y\",\"rejected\":\"n\"}\n";

TEST(ScoredPairs, AreScoredAtTheirLastTokensWithTheirMargins) {
  Scratch scratch;
  const auto data = value_or_throw(load<PairExample>(
      {.paths = {scratch.write("rows.jsonl", pairs_with_margins)}}, ByteEncoder()));
  const auto& e = data.examples;
  const Experience b = to_scored_pairs({{&e[0], &e[2]}, {0, 2}});
  EXPECT_THAT(b.label, ElementsAre(0.5f, 0, 0, 0));
  EXPECT_EQ(b.count, 2);
  EXPECT_EQ(b.sequences_per_group, 2);
  for (std::int32_t n = 0; n < b.sequences(); ++n)
    for (auto t = b.offsets[static_cast<std::size_t>(n)];
         t < b.offsets[static_cast<std::size_t>(n) + 1]; ++t)
      EXPECT_EQ(b.mask[static_cast<std::size_t>(t)],
                t + 1 == b.offsets[static_cast<std::size_t>(n) + 1] ? 1 : 0);
  EXPECT_EQ(b.tokens.back(), ByteEncoder::end);
  EXPECT_TRUE(to_scored_pairs({{&e[2]}, {2}}).label.empty()) << "no margin in this batch";
}

TEST(ScoredPairs, LongerThanTheMaximumAreLeftOutNotCut) {
  Scratch scratch;
  DataOptions options{.paths = {scratch.write("rows.jsonl", pairs_with_margins)}};
  options.encode.max_length = 10;
  EXPECT_EQ(value_or_throw(load<PairExample>(options, ByteEncoder())).report.truncated, 1);
  options.encode.skip_longer = true;
  const auto data = value_or_throw(load<PairExample>(options, ByteEncoder()));
  EXPECT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(data.report.untrainable, 1);
  EXPECT_EQ(data.report.truncated, 0);
  EXPECT_THAT(data.report.text(), HasSubstr("1 dropped: longer than 10 tokens (first: "));
}

TEST(ScoredPairs, AMarginThatIsNoNumberIsRefused) {
  Scratch scratch;
  const auto refused = [&](const std::string& row) {
    return load<PairExample>({.paths = {scratch.write("rows.jsonl", row)}}, ByteEncoder())
        .error()
        .what;
  };
  EXPECT_THAT(refused(R"({"prompt":"q","chosen":"y","rejected":"n","margin":"big"})"),
              AllOf(HasSubstr("rows.jsonl:1"),
                    HasSubstr("expected a number under \"margin\", found \"big\"")));
  EXPECT_THAT(refused(R"({"chosen_input_ids":[1,2],"rejected_input_ids":[1,3],"margin":[1]})"),
              HasSubstr("found array"));
}

}  // namespace
}  // namespace troupe::engine::data
