// `troupe explain` over data: what a run would read, for every method, and what it would refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/commands/explain/data_preview.h"
#include "launch/commands/explain/example_text.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch::preview_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Preview : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file_durably(cat(folder_, '/', name), text));
    return cat(folder_, '/', name);
  }
  ProgramOutput explain(const std::string& algorithm, const std::string& rows,
                        const std::string& more = "") const {
    return run_program(cat(
        "explain --algorithm ", algorithm, " --set model=", data("models/stories260k/hf"),
        " --set data.path=", rows, " --set output=", folder_, "/out --set train.threads=1 ", more));
  }
  std::string folder_ = scratch_folder();
};

TEST_F(Preview, ShowsRowsLengthsStepsAndAnExample) {
  std::string rows;
  for (int i = 0; i < 30; ++i)
    rows += cat("{\"prompt\":\"Tell me ", i, "\",\"completion\":\" ",
                std::string(i % 7 * 5 + 1, 'x'), "\"}\n");
  rows += cat("{\"prompt\":\"", std::string(300, 'y'), "\",\"completion\":\"z\"}\n");
  const ProgramOutput said =
      explain("sft", write("rows.jsonl", rows),
              "--set train.max_length=64 --set train.batch_size=4 --set train.epochs=1.5");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, ContainsRegex("layout +prompt_completion\n"));
  EXPECT_THAT(said.out, ContainsRegex("rows +31, 30 used\n"));
  EXPECT_THAT(said.out, ContainsRegex("dropped +1: prompt leaves no room for an answer within 64 "
                                      "tokens \\(first: .*rows.jsonl:31\\)"));
  EXPECT_THAT(said.out, ContainsRegex("steps +12, batch size 4, 1.5")) << "45 rows";
  EXPECT_THAT(said.out, ContainsRegex("time +[0-9.]+ s to [0-9.]+ s, without"));
  EXPECT_THAT(said.out, ContainsRegex("checkpoints +3.0 MiB each, up to 3.0 MiB for 1\n"));
  EXPECT_THAT(
      said.out,
      HasSubstr("First example (in [[brackets]]: trained on)\n  <s> Tell me 0[[ x</s>]]\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(Preview, LinesFitIntoEightyColumns) {
  std::string rows;
  for (int i = 0; i < 200; ++i)
    rows += cat("{\"prompt\":\"Tell me of ", i, "\",\"completion\":\"", std::string(i % 90, 'x'),
                " é 字\"}\n");
  const ProgramOutput said = explain("sft", write("rows.jsonl", rows));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto begin = said.out.find("\nData\n");
  ASSERT_NE(begin, std::string::npos);
  std::string_view rest = std::string_view(said.out).substr(begin);
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    EXPECT_LE(count_code_points(line), 80u) << line;
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

TEST_F(Preview, StatesWhatOverlapsAndTheVersionsThatAreKept) {
  const auto prompts = write("prompts.jsonl", "{\"prompt\":\"q\",\"answer\":\"7\"}\n");
  const std::string reward = "--set reward=exact_match ";
  const ProgramOutput off = explain("grpo", prompts, reward);
  EXPECT_THAT(off.out, HasSubstr("none: async.mode is off"));
  EXPECT_THAT(off.out, Not(HasSubstr("versions of the weights")));
  const ProgramOutput on =
      explain("grpo", prompts,
              reward + "--set async.mode=pinned --set async.eta=2 --set rollout.threads=1");
  EXPECT_THAT(on.out, ContainsRegex("3 versions of the weights to sample with +3.0 MiB"))
      << "of 1.0 MiB each";
  EXPECT_THAT(on.out, AllOf(HasSubstr("sampling and rewards of later batches, with training"),
                            HasSubstr("25 % and 75 % of the FLOPs: at most 1.33 times as fast"),
                            Not(HasSubstr("rollout.threads is 0"))));
  EXPECT_THAT(explain("grpo", prompts, reward + "--set async.mode=pinned").out,
              HasSubstr("not in one: rollout.threads is 0"));
  EXPECT_THAT(explain("grpo", prompts, reward + "--set async.mode=pinned --set async.eta=0").out,
              HasSubstr("none: async.eta is 0"));
}

TEST_F(Preview, ReadsTheRowsOfEveryMethod) {
  const auto pairs =
      write("pairs.jsonl", "{\"prompt\":\"q\",\"chosen\":\" good\",\"rejected\":\" bad\"}\n");
  for (const char* algorithm : {"dpo", "simpo", "cpo", "orpo", "orm"}) {
    const ProgramOutput said = explain(algorithm, pairs);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.out, AllOf(ContainsRegex("rows +1, 1 used"), HasSubstr("chosen (7 tokens):"),
                                HasSubstr("rejected (")))
        << algorithm;
  }
  EXPECT_THAT(explain("kto", write("kto.jsonl",
                                   "{\"prompt\":\"q\",\"completion\":\" no\",\"label\":false}\n"))
                  .out,
              HasSubstr("undesirable ("));
  EXPECT_THAT(
      explain("prm",
              write("prm.jsonl",
                    "{\"prompt\":\"q\",\"completions\":[\"a\",\"b\"],\"labels\":[true,false]}\n"))
          .out,
      HasSubstr("classes of the marked tokens: 1, 0"));
  const auto prompts = write("prompts.jsonl", "{\"prompt\":\"q\",\"answer\":\"7\"}\n");
  for (const char* algorithm : {"grpo", "ppo"})
    EXPECT_THAT(
        explain(algorithm, prompts, "--set reward=exact_match --set rollout.max_new_tokens=8").out,
        AllOf(HasSubstr("prompt (3 tokens):"), HasSubstr("answer: \"7\"\n")))
        << algorithm;
}

TEST_F(Preview, WhatTrainWouldRefuseIsRefusedWithTheSameCode) {
  const auto sft = write("sft.jsonl", "{\"prompt\":\"q\",\"completion\":\"a\"}\n");
  const ProgramOutput pairs = explain("dpo", sft);
  EXPECT_EQ(pairs.code, 3);
  EXPECT_THAT(pairs.out, HasSubstr("sft.jsonl:1: the row's columns fit no known layout"));
  const auto prompts = write("prompts.jsonl", "{\"prompt\":\"q\"}\n");
  const ProgramOutput answer =
      explain("grpo", prompts, "--set reward=exact_match --set rollout.max_new_tokens=8");
  EXPECT_EQ(answer.code, 3);
  EXPECT_THAT(answer.out,
              HasSubstr("prompts.jsonl:1: the reward rule exact_match needs the row's answer"));
  EXPECT_EQ(
      explain("grpo", prompts, "--set 'reward=[{rule: format}]' --set rollout.max_new_tokens=8")
          .code,
      0);
}

TEST_F(Preview, TheWarmupThatIsLongerThanTheRunIsNamed) {
  const auto rows = write("sft.jsonl", "{\"prompt\":\"q\",\"completion\":\"a\"}\n");
  EXPECT_THAT(explain("sft", rows, "--set train.warmup_steps=9").out,
              ContainsRegex("warmup +9 steps, longer than the run"));
}

TEST_F(Preview, NoDataIsReadOnRequest) {
  const ProgramOutput said = explain("dpo", write("rows.jsonl", "no rows"), "--no-data");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, Not(HasSubstr("\nData\n")));
}

TEST_F(Preview, ControlCharactersAreEscaped) {
  const ProgramOutput said =
      explain("sft", write("rows.jsonl", "{\"text\":\"a\\u001b[31mb\\nc\\u202ed\"}\n"));
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("\\x1b[31mb\\n\n  c\\xe2\\x80\\xaed"), Not(HasSubstr("\x1b"))));
}

TEST_F(Preview, OfAHugeFileReadsItsBeginning) {
  std::string rows;
  for (int i = 0; i < 500; ++i) rows += "{\"text\":\"some words\"}\n";
  const auto path = write("rows.jsonl", rows);
  const auto run =
      value_or_throw(recipes::resolve({.algorithm = "sft",
                                       .sets = {"model=M", "output=O", "data.path=" + path},
                                       .check_files = false}));
  engine::data::DataOptions options{.paths = {path}};
  class Letters final : public engine::data::TextEncoder {
   public:
    Result<std::vector<std::int32_t>> encode(std::string_view text, bool) const override {
      return std::vector<std::int32_t>(text.begin(), text.end());
    }
    Result<engine::data::RenderedChat> render_chat(const Json&, bool, const Json&) const override {
      return engine::data::RenderedChat{};
    }
    bool has_chat_template() const override { return false; }
    std::optional<std::int32_t> end_token() const override { return std::nullopt; }
    std::int64_t vocabulary() const override { return 0; }
  };
  const auto part =
      value_or_throw(commands::preview_data(run.config, options, Letters(), {.rows = 100}));
  EXPECT_FALSE(part.complete);
  EXPECT_EQ(part.report.rows, 100);
  EXPECT_EQ(part.rows, 500);
  EXPECT_EQ(part.sources[0].size, 500u);
  EXPECT_THAT(commands::rows_text(part),
              HasSubstr("500, 100 used of the first 100, which were tokenized"));
  const auto few = value_or_throw(
      commands::preview_data(run.config, options, Letters(), {.rows = 100, .counted_bytes = 10}));
  EXPECT_EQ(few.rows, std::nullopt);
  EXPECT_THAT(commands::rows_text(few), HasSubstr("more than 100"));
  options.selection.first_rows = 300;
  EXPECT_EQ(
      value_or_throw(commands::preview_data(run.config, options, Letters(), {.rows = 100})).rows,
      300);
}

TEST(ExampleText, MarksWhatIsTrainedOn) {
  const commands::ShownExample example{{{"", {1, 2, 3, 4}, {0, 1, 1, 0}}}, {}};
  const commands::TokenText letters = [](std::span<const std::int32_t> ids) {
    std::string text;
    for (const auto id : ids) text += static_cast<char>('a' + id);
    return text;
  };
  EXPECT_EQ(commands::example_text(example, letters, commands::MaskStyle::brackets),
            "  b[[cd]]e\n");
  EXPECT_EQ(commands::example_text(example, letters, commands::MaskStyle::color),
            "  b\x1b[32mcd\x1b[0me\n");
  EXPECT_EQ(commands::example_text(example, nullptr, commands::MaskStyle::brackets),
            "  1 [[2 3 ]]4 \n");
}

TEST(ExampleText, ColorEndsWithEachLine) {
  const commands::ShownExample example{
      {{"", std::vector<std::int32_t>(100, 1), std::vector<float>(100, 1.0f)}}, {}};
  const commands::TokenText letters = [](std::span<const std::int32_t> ids) {
    return std::string(ids.size(), 'x');
  };
  EXPECT_EQ(commands::example_text(example, letters, commands::MaskStyle::color),
            cat("  \x1b[32m", std::string(78, 'x'), "\x1b[0m\n  \x1b[32m", std::string(22, 'x'),
                "\x1b[0m\n"));
}

TEST(ExampleText, LeavesOutTheMiddleOfALongSequence) {
  const commands::ShownExample example{
      {{"", std::vector<std::int32_t>(1000, 1), std::vector<float>(1000, 0.0f)}}, {}};
  const auto text = commands::example_text(example, nullptr, commands::MaskStyle::brackets);
  EXPECT_THAT(text, HasSubstr("\n  ... 600 tokens ...\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '1'), 400);
}

TEST(Histogram, CountsEveryLength) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 1; i <= 97; ++i)
    lengths.insert(lengths.end(), static_cast<std::size_t>(i), i);
  const auto text = commands::histogram_text(lengths);
  EXPECT_THAT(text, HasSubstr("longest 97"));
  std::int64_t sum = 0, lines = 0;
  std::string_view rest = std::string_view(text).substr(text.find('\n') + 1);
  while (!rest.empty()) {
    const auto line = std::string(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    EXPECT_LE(line.size(), 80u);
    sum += std::stoll(line.substr(line.find('-') + 5));
    ++lines;
  }
  EXPECT_EQ(sum, std::ssize(lengths));
  EXPECT_GE(lines, 8);
  EXPECT_LE(lines, 13);
  EXPECT_THAT(commands::histogram_text({5}), HasSubstr("5 - 5  1 #"));
}

TEST(RunKeys, AWarmupAndASplitAreGivenInOneWay) {
  const auto with = [](std::vector<std::string> sets, const std::string& algorithm = "sft") {
    sets.insert(sets.end(), {"model=M", "output=O", "data.path=D"});
    return recipes::resolve(
        {.algorithm = algorithm, .sets = std::move(sets), .check_files = false});
  };
  EXPECT_THAT(with({"train.warmup_ratio=0.1", "train.warmup_steps=2"}).error().what,
              HasSubstr("train.warmup_steps is also set; keep one"));
  EXPECT_THAT(with({"data.split=0.1", "eval.path=E"}).error().what,
              HasSubstr("eval.path is also set; keep one"));
  EXPECT_THAT(with({"data.split=1"}).error().what, HasSubstr("at least 0, below 1"));
  EXPECT_THAT(with({"train.epochs=0"}).error().what, HasSubstr("above 0"));
  const auto half = with({"train.epochs=0.5", "train.warmup_ratio=0.03"});
  ASSERT_TRUE(half) << half.error().what;
  EXPECT_EQ(half->config.train.epochs, 0.5);
  EXPECT_EQ(half->config.train.schedule_options(100).warmup_steps, 3);
  EXPECT_EQ(half->config.train.schedule_options(101).warmup_steps, 4);
  const auto longer = with({"train.warmup_steps=10"});
  ASSERT_TRUE(longer) << longer.error().what;
  const auto schedule = value_or_throw(engine::optim::Schedule::create(
      longer->config.train.schedule, longer->config.train.schedule_options(3)));
  EXPECT_DOUBLE_EQ(schedule(2), 0.2) << "the run ends within its warmup";
  EXPECT_EQ(recipes::config_of(recipes::to_yaml(half->config), "x")->train.epochs, 0.5);
}

}  // namespace
}  // namespace troupe::launch::preview_test
