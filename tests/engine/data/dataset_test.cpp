#include "engine/data/loader/dataset.h"

#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Dataset, RealRowsOfEveryKindAreReadWhole) {
  const ByteEncoder encoder;
  const std::vector<std::tuple<const char*, Layout, std::size_t>> table = {
      {"math/gsm8k_train_head.jsonl", Layout::question_answer, 100},
      {"math/math500_head.jsonl", Layout::question_answer, 10},
      {"alpaca/identity_head.json", Layout::alpaca, 30},
      {"alpaca/gpteacher_codegen_head.jsonl", Layout::alpaca, 20},
      {"sharegpt/dummy_conversation_head.json", Layout::messages, 10},
      {"sharegpt/glaive_toolcall_en_demo_head.json", Layout::messages, 5},
      {"sharegpt/v1_sft_demo_head.jsonl", Layout::messages, 20},
  };
  for (const auto& [file, layout, rows] : table) {
    const auto data = value_or_throw(
        load<SftExample>({.paths = {data_file(std::string("datasets/") + file)}}, encoder));
    EXPECT_EQ(data.report.layout, layout) << file;
    EXPECT_EQ(data.examples.size(), rows) << file;
    EXPECT_EQ(data.report.rows, static_cast<std::int64_t>(rows)) << file;
  }
  for (const auto& [file, rows] : {std::pair{"pairwise/hh_rlhf_harmless_base_test_head.jsonl", 40u},
                                   {"pairwise/dpo_en_demo_head.json", 10u}})
    EXPECT_EQ(value_or_throw(load<PairExample>(
                                 {.paths = {data_file(std::string("datasets/") + file)}}, encoder))
                  .examples.size(),
              rows)
        << file;
}

TEST(Dataset, Gsm8kTrainsOnTheAnswerAlone) {
  const auto data = value_or_throw(load<SftExample>(
      {.paths = {data_file("datasets/math/gsm8k_train_head.jsonl")}}, ByteEncoder()));
  const auto& first = data.examples.front();
  EXPECT_THAT(text_of_ids(first.ids),
              testing::StartsWith("<s>Natalia sold clips to 48 of her friends in April"));
  EXPECT_EQ(text_of_ids(first.ids, &first.weights),
            "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nNatalia sold 48+24 = <<48+24=72>>72 "
            "clips altogether in April and May.\n#### "
            "72<eos>");
}

TEST(Dataset, HarmlessDialoguesPartAtTheLastAnswer) {
  const auto data = value_or_throw(load<PairExample>(
      {.paths = {data_file("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl")}},
      ByteEncoder()));
  for (const auto& [chosen, rejected, margin] : data.examples) {
    for (const auto* side : {&chosen, &rejected}) {
      const auto text = text_of_ids(side->ids), answer = text_of_ids(side->ids, &side->weights);
      EXPECT_TRUE(text.ends_with("\n\nAssistant:" + answer)) << answer;
      EXPECT_EQ(answer.find("\n\nHuman:"), std::string::npos) << answer;
    }
    const auto prompt =
        std::find(chosen.weights.begin(), chosen.weights.end(), 1.0f) - chosen.weights.begin();
    EXPECT_TRUE(std::equal(chosen.ids.begin(), chosen.ids.begin() + prompt, rejected.ids.begin()));
  }
}

TEST(Dataset, PromptsBringTheirAnswersAndColumns) {
  const auto data = value_or_throw(load<PromptRow>(
      {.paths = {data_file("models/digit-completion/train_answers.jsonl")}}, ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 800u);
  EXPECT_EQ(data.examples[0].text, "8,3:9,4");
  EXPECT_EQ(data.examples[0].answer, Json("7,2,6,1"));
  const auto math = value_or_throw(
      load<PromptRow>({.paths = {data_file("datasets/math/math500_head.jsonl")}}, ByteEncoder()));
  EXPECT_EQ(math.examples[0].columns.find("level")->string(), "Level 2");
}

TEST(Dataset, TheFirstMalformedRowStopsTheRunUnlessALimitAllowsSome) {
  Scratch scratch;
  const auto path = scratch.write("rows.jsonl",
                                  "{\"prompt\":\"a\",\"completion\":\"b\"}\n"
                                  "{\"prompt\":\"a\"}\n"
                                  "{\"prompt\":\n"
                                  "{\"prompt\":\"c\",\"completion\":\"d\"}\n");
  const auto stopped = load<SftExample>({.paths = {path}}, ByteEncoder());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::bad_input);
  EXPECT_THAT(stopped.error().what, AllOf(HasSubstr("rows.jsonl:2: nothing under"),
                                          HasSubstr("data.max_bad_rows above 0")));
  EXPECT_THAT(
      load<SftExample>({.paths = {path}, .bad_row_limit = 1}, ByteEncoder()).error().what,
      AllOf(HasSubstr("rows.jsonl:3: not valid JSON at column 10"), HasSubstr("max_bad_rows=1")));
  const auto data =
      value_or_throw(load<SftExample>({.paths = {path}, .bad_row_limit = 2}, ByteEncoder()));
  EXPECT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(data.report.rows, 4);
  EXPECT_EQ(data.report.bad, 2);
  ASSERT_EQ(data.report.unused.size(), 2u);
  EXPECT_THAT(data.report.text(), AllOf(HasSubstr("4 rows"), HasSubstr("2 used"),
                                        HasSubstr("2 malformed"), HasSubstr("rows.jsonl:2")));
}

TEST(Dataset, RowsWithNothingLeftToTrainOnAreCountedNotKept) {
  Scratch scratch;
  const auto path = scratch.write("rows.jsonl",
                                  "{\"prompt\":\"a\",\"completion\":\"c\"}\n"
                                  "{\"prompt\":\"a long prompt\",\"completion\":\"b\"}\n"
                                  "{\"prompt\":\"a\",\"completion\":\"a long completion\"}\n");
  const auto data = value_or_throw(
      load<SftExample>({.paths = {path}, .encode = {.max_length = 8}}, ByteEncoder()));
  EXPECT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(data.report.untrainable, 1);
  EXPECT_EQ(data.report.truncated, 1);
  EXPECT_THAT(data.report.text(),
              AllOf(HasSubstr("1 of them truncated to train.max_length (12 tokens lost)"),
                    HasSubstr("1 dropped: prompt leaves no room for an answer within 8 tokens "
                              "(first: "),
                    HasSubstr("rows.jsonl:2)")));
  const auto none = load<SftExample>({.paths = {path}, .encode = {.max_length = 2}}, ByteEncoder());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("no row to train on"));
}

TEST(Dataset, RowsWithoutATargetAreNotCalledTooLong) {
  Scratch scratch;
  const auto path = scratch.write("rows.jsonl",
                                  "{\"input_ids\":[1,2,3],\"labels\":[-100,-100,-100]}\n"
                                  "{\"input_ids\":[5],\"labels\":[5]}\n"
                                  "{\"input_ids\":[1,2,3,4],\"labels\":[-100,-100,-100,4]}\n"
                                  "{\"input_ids\":[1,2],\"labels\":[1,2]}\n");
  const auto data = value_or_throw(
      load<SftExample>({.paths = {path}, .encode = {.max_length = 3}}, ByteEncoder()));
  EXPECT_EQ(data.report.untrainable, 3);
  EXPECT_EQ(data.report.too_long, 1);
  EXPECT_THAT(data.report.text(),
              AllOf(HasSubstr("1 used, 2 dropped: no token to train on (first: "),
                    HasSubstr("rows.jsonl:1), 1 dropped: prompt leaves no room for an answer "
                              "within 3 tokens (first: ")));
}

TEST(Dataset, AnEmptyFileIsRefused) {
  Scratch scratch;
  EXPECT_THAT(
      load<SftExample>({.paths = {scratch.write("rows.jsonl", "\n")}}, ByteEncoder()).error().what,
      HasSubstr("rows.jsonl: expected rows, found none (the file is empty)"));
  EXPECT_EQ(load<SftExample>({.paths = {scratch.path("none.jsonl")}}, ByteEncoder()).error().code,
            Errc::not_found);
}

TEST(Dataset, AColumnNobodyKnowsIsRefusedWithTheNearest) {
  const auto data =
      load<SftExample>({.paths = {"x"}, .columns = {{"promt", "question"}}}, ByteEncoder());
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Errc::usage);
  EXPECT_THAT(data.error().what, HasSubstr("did you mean prompt?"));
}

TEST(Dataset, TheReasonsForUnusedRowsAreCountedWithTheirFirstPlace) {
  Scratch scratch;
  const std::string good = "{\"prompt\":\"a\",\"completion\":\"c\"}\n",
                    bad = "{\"prompt\":\"a\"}\n", broken = "{\n";
  const auto path = scratch.write("rows.jsonl", good + bad + broken + bad + good + bad);
  const auto report =
      value_or_throw(load<SftExample>({.paths = {path}, .bad_row_limit = 4}, ByteEncoder())).report;
  ASSERT_EQ(report.unused.size(), 2u);
  EXPECT_EQ(report.unused[0].why, "nothing under \"completion\"");
  EXPECT_EQ(report.unused[0].first, path + ":2");
  EXPECT_EQ(report.unused[0].rows, 3);
  EXPECT_TRUE(report.unused[0].malformed);
  EXPECT_EQ(report.unused[1].first, path + ":3");
  EXPECT_EQ(report.unused[1].rows, 1);
}

TEST(Dataset, ManyReasonsAreCountedTogether) {
  DataReport report;
  for (int i = 0; i < 40; ++i) report.add_unused({cat("reason ", i), "rows.jsonl:1", true, 2});
  ASSERT_EQ(report.unused.size(), 17u);
  EXPECT_EQ(report.unused.back().why, "other reasons");
  EXPECT_EQ(report.unused.back().rows, 48);
}

TEST(Dataset, AFileOfAnotherLayoutIsRefusedWithTheNameOfTheMix) {
  Scratch scratch;
  const auto a = scratch.write("a.jsonl", "{\"prompt\":\"a\",\"completion\":\"c\"}\n"),
             b = scratch.write("b.jsonl", "{\"instruction\":\"a\",\"output\":\"c\"}\n");
  for (const auto limit : {0, 10}) {  // it is not a malformed row
    const auto data = load<SftExample>({.paths = {a, b}, .bad_row_limit = limit}, ByteEncoder());
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().code, Errc::usage);
    EXPECT_THAT(
        data.error().what,
        AllOf(HasSubstr("b.jsonl:1: the rows of this file have the layout alpaca, those of "),
              HasSubstr("a.jsonl have prompt_completion"), HasSubstr("data.mix")));
  }
}

TEST(Dataset, AFileForAnotherMethodIsRefusedWithTheNameOfTheMix) {
  Scratch scratch;
  const auto a = scratch.write("a.jsonl", "{\"prompt\":\"a\",\"completion\":\"c\"}\n"),
             b = scratch.write("b.jsonl",
                               "{\"prompt\":\"a\",\"chosen\":\"c\",\"rejected\":\"d\"}\n");
  const auto data = load<SftExample>({.paths = {a, b}}, ByteEncoder());
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Errc::bad_input);
  EXPECT_THAT(data.error().what,
              AllOf(HasSubstr("b.jsonl:1: the row's columns fit no known layout"),
                    HasSubstr("a.jsonl have the layout prompt_completion"), HasSubstr("data.mix")));
}

TEST(Dataset, APromptThatFailsTheCheckIsAMalformedRow) {
  Scratch scratch;
  const auto path =
      scratch.write("rows.jsonl", "{\"prompt\":\"a\",\"answer\":1}\n{\"prompt\":\"b\"}\n");
  DataOptions options{.paths = {path}};
  options.check_prompt = [](const PromptRow& row) -> Result<> {
    if (!row.answer.is_null()) return {};
    return fail(Errc::bad_input, "no answer");
  };
  const auto refused = load<PromptRow>(options, ByteEncoder());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::bad_input);
  EXPECT_THAT(refused.error().what, HasSubstr("rows.jsonl:2: no answer"));
  options.bad_row_limit = 1;
  EXPECT_EQ(value_or_throw(load<PromptRow>(options, ByteEncoder())).examples.size(), 1u);
}

TEST(Dataset, WholeFloatsAreTokenIds) {
  Scratch scratch;
  const auto path = scratch.write("rows.jsonl", "{\"input_ids\":[72.0,105,257.0]}\n");
  const auto data = value_or_throw(load<SftExample>({.paths = {path}}, ByteEncoder()));
  EXPECT_EQ(data.examples[0].ids, (std::vector<std::int32_t>{72, 105, 257}));
  for (const char* ids : {"[72.5,1]", "[1e300,1]", "[-1.0,1]", "[259.0,1]"}) {
    const auto refused = load<SftExample>(
        {.paths = {scratch.write("bad.jsonl", cat("{\"input_ids\":", ids, "}\n"))}}, ByteEncoder());
    ASSERT_FALSE(refused) << ids;
    EXPECT_THAT(refused.error().what, HasSubstr("expected a token id from 0 to 258")) << ids;
  }
}

TEST(Dataset, SeveralFilesAreReadInOrderAndFingerprinted) {
  Scratch scratch;
  const auto a = scratch.write("a.jsonl", "{\"text\":\"xx\"}\n"),
             b = scratch.write("b.json", "[{\"text\":\"yy\"}]");
  const auto data = value_or_throw(load<SftExample>({.paths = {b, a}}, ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(text_of_ids(data.examples[0].ids), "<s>yy<eos>");
  ASSERT_EQ(data.files.size(), 2u);
  EXPECT_EQ(data.files[1].path, a);
  EXPECT_EQ(data.files[1].bytes, 14u);
  EXPECT_EQ(value_or_throw(fingerprint(scratch.write("empty", ""))).xxh3,
            "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, as published
}

}  // namespace
}  // namespace troupe::engine::data
