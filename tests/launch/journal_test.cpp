#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/journal/events_file.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/progress.h"
#include "launch/journal/run_journal.h"
#include "launch/journal/samples_file.h"
#include "launch/journal/timeline.h"
#include "launch/run/text_model.h"
#include "tests/launch/program.h"

namespace troupe::launch::journal_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string fresh_folder(const std::string& name) {
  const std::string path = testing::TempDir() + "journal_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

OutputFolder folder_at(const std::string& path) {
  return value_or_throw(OutputFolder::open(path));
}

std::string text_of(const std::string& path) {
  return read_file(path).value_or("");
}

TEST(Metrics, LinesCarryEveryDigit) {
  const double third = 1.0 / 3;
  const std::string line =
      journal::metrics_line(7, {{"loss", third}, {"grad_norm", std::nan("")}, {"tokens", 12}});
  const auto json = parse_json(line, "line");
  ASSERT_TRUE(json) << line;
  EXPECT_EQ(json->object()[0].first, "step");
  EXPECT_EQ(json->find("step")->integer(), 7);
  EXPECT_EQ(json->find("loss")->number(), third);
  EXPECT_TRUE(json->find("grad_norm")->is_null());
  EXPECT_EQ(line.back(), '\n');
}

TEST(Metrics, CutBackKeepsWholeLinesOfDoneStepsOnce) {
  const OutputFolder folder = folder_at(fresh_folder("cut"));
  const std::string name = "metrics.jsonl", path = folder.path_of(name);
  ASSERT_TRUE(write_file_durably(path,
                                 "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":2,"
                                 "\"loss\":9}\nnoise\n{\"step\":3,\"loss\":1}\n{\"st"));
  ASSERT_TRUE(journal::truncate_after(folder, name, 2, true));
  EXPECT_EQ(text_of(path), "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n");
  ASSERT_TRUE(journal::truncate_after(folder, name, 0, true));
  EXPECT_EQ(text_of(path), "");
  EXPECT_TRUE(journal::truncate_after(folder, name + ".missing", 1, true));
  EXPECT_FALSE(std::filesystem::exists(path + ".missing"));
}

TEST(Events, Crc32cOfTheRfc) {
  EXPECT_EQ(journal::crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720 B.4
  EXPECT_EQ(journal::crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(journal::crc32c("123456789"), 0xE3069283u);
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += two;
  }
  return out;
}

TEST(Events, RecordsAreTensorboardsBytes) {
  // Written by tensorboard 2 (Event.SerializeToString, masked_crc32c).
  EXPECT_EQ(hex(journal::version_event(1.0)), "09000000000000f03f1a0d627261696e2e4576656e743a32");
  EXPECT_EQ(hex(journal::metrics_event(2.0, 300, {{"loss", 0.5}, {"gone", std::nan("")}})),
            "09000000000000004010ac022a0d0a0b0a046c6f7373150000003f");
  EXPECT_EQ(hex(journal::restart_event(2.0, 3)), "09000000000000004010033a020801");
  EXPECT_EQ(hex(journal::tf_record(journal::version_event(1.0))),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
}

std::string written(bool terminal, double seconds_a_step) {
  std::FILE* file = std::tmpfile();
  double now = 0;
  journal::Progress progress(file, {.terminal = terminal, .columns = [] { return 40; }}, 1,
                             [&] { return now; });
  progress.begin(100, 0);
  for (std::int64_t step = 1; step <= 100; ++step) {
    now += seconds_a_step;
    progress.step(step, {{"loss", 1}}, {});
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(Progress, PlainLinesComeNowAndThenElsewhere) {
  const std::string text = written(false, 0.1);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 9);
  EXPECT_LE(lines, 13);
  EXPECT_THAT(text, HasSubstr("step 1/100"));
  EXPECT_THAT(text, HasSubstr("step 100/100"));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(Samples, AreReadableAndHarmless) {
  algorithms::Sample sample{.sample_id = 3,
                            .prompt = "1,2:9,2",
                            .completion = "3,\x1b[2J4",
                            .finish_reason = "stop",
                            .reward = 1,
                            .advantage = 0.5,
                            .parts = {{"exact_match", 1}}};
  EXPECT_EQ(journal::sample_text(2, sample),
            "--- step 2, sample 3, reward 1.000, advantage 0.500, stop, exact_match "
            "1.000\n[prompt] 1,2:9,2\n[completion] 3,\\x1b[2J4\n\n");
  sample.answer = "3,4";
  EXPECT_THAT(journal::sample_text(2, sample), HasSubstr("\n[answer] 3,4\n\n"));
  EXPECT_EQ(parse_json(journal::sample_line(2, sample), "line")->find("answer")->string(), "3,4");
  sample.parts = {{"a\x1b]0;name\a\xe2\x80\xae", 1}};
  EXPECT_THAT(journal::sample_text(2, sample), HasSubstr(", a\\x1b]0;name\\x07\\u202e 1.000\n"));
  sample.completion = "bad \xff byte";
  EXPECT_THAT(journal::sample_text(2, sample), HasSubstr("[completion] bad \\xff byte\n"));
  EXPECT_TRUE(parse_json(journal::sample_line(2, sample), "line"));
}

TEST(Samples, MarkWhatToolsWrote) {
  const std::string folder = fresh_folder("tools");
  const algorithms::Sample sample{.sample_id = 1,
                                  .prompt = "26+62",
                                  .completion = "26,62:8888",
                                  .finish_reason = "stop",
                                  .parts = {},
                                  .prompt_ids = {1},
                                  .ids = {7, 8, 9, 3},
                                  .logprobs = {-1, 0, 0, -1},
                                  .versions = {{4, 4}},
                                  .sampled = {1, 0, 0, 1}};
  const auto run = [&](std::int64_t done) {
    journal::RunJournal journal(folder_at(folder), "test", "grpo", 0);
    journal.split_by([](std::span<const std::int32_t> ids, std::span<const std::uint8_t> sampled) {
      EXPECT_EQ(ids.size(), sampled.size());
      return std::vector<std::pair<std::string, bool>>{{"26,62", true},
                                                       {":8\x1b"
                                                        "8",
                                                        false},
                                                       {"88", true}};
    });
    journal.begin(2, done);
    if (done == 0) journal.sample(1, sample);
    if (done == 0) journal.record(1, {{"loss", 1}});
  };
  const std::string expected =
      "\n[prompt] 26+62\n[completion] 26,62\n[tool] :8\\x1b8\n[completion] 88\n\n";
  run(0);
  EXPECT_THAT(text_of(folder + "/samples.txt"), testing::EndsWith(expected));
  const auto line = value_or_throw(parse_json(text_of(folder + "/samples.jsonl"), "line"));
  EXPECT_EQ(line.find("sampled")->dump(), "[1,0,0,1]");
  EXPECT_EQ(line.find("completion")->string(), "26,62:8888");
  EXPECT_EQ(line.find("pieces")->array().size(), 3u);
  run(1);
  EXPECT_THAT(text_of(folder + "/samples.txt"), testing::EndsWith(expected)) << "a resumed run";
}

TEST(Samples, ArePiecesOfTheTextByWhoWroteThem) {
  const std::string folder = data("models/stories260k/hf");
  const auto spec = value_or_throw(engine::checkpoint::read_folder_spec(folder));
  const auto model = value_or_throw(run::TextModel::load(folder, "", spec));
  auto ids = value_or_throw(model->encode("Once upon a time", false));
  const std::size_t first = ids.size();
  const auto more = value_or_throw(model->encode(" there was \u00e9 girl", false));
  ids.insert(ids.end(), more.begin(), more.end());
  std::vector<std::uint8_t> sampled(ids.size(), 0);
  std::fill_n(sampled.begin(), first, std::uint8_t{1});
  const auto pieces = model->pieces(ids, sampled);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_TRUE(pieces[0].second);
  EXPECT_FALSE(pieces[1].second);
  EXPECT_THAT(pieces[0].first, testing::EndsWith("upon a time"));
  EXPECT_EQ(pieces[0].first + pieces[1].first, model->decode(ids));
  EXPECT_EQ(model->pieces(ids, std::vector<std::uint8_t>(ids.size(), 1)).size(), 1u);
  EXPECT_TRUE(model->pieces(ids, {}).empty());
}

TEST(Samples, HaveTheTokensWithTheirVersions) {
  const algorithms::Sample sample{.sample_id = 3,
                                  .parts = {},
                                  .prompt_ids = {1, 2},
                                  .ids = {7, 8, 3},
                                  .logprobs = {-0.1f, -1.0f / 3, 0},
                                  .versions = {{4, 2}, {5, 1}}};
  const auto line = parse_json(journal::sample_line(2, sample), "line");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->find("prompt_ids")->dump(), "[1,2]");
  EXPECT_EQ(line->find("ids")->dump(), "[7,8,3]");
  EXPECT_EQ(line->find("versions")->dump(), "[[4,2],[5,1]]");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(static_cast<float>(line->find("logprobs")->array()[i].number()), sample.logprobs[i])
        << "the same bits";
}

actors::AskRecord ask(const std::string& node, const std::string& type, std::int64_t began,
                      std::int64_t ended) {
  constexpr std::int64_t ms = 1'000'000, start = 5'000'000'000;
  return {{node, "role"},           type, start, start + began * ms, start + ended * ms,
          start + (ended + 1) * ms, false};
}

TEST(Timeline, LinesAreCutBackToTheStepsThatAreDone) {
  const std::string folder = fresh_folder("timeline");
  const auto lines = [&] {
    std::vector<std::string> out;
    journal::for_each_line(folder + "/timeline.jsonl", [&](const Json& line, std::string_view) {
      out.push_back(line.find("message")->dump());
    });
    return out;
  };
  {
    journal::Timeline timeline(folder_at(folder), 0);
    timeline.answered(ask("a", "first", 0, 1));
    timeline.record(1);
    timeline.answered(ask("a", "second", 0, 1));
  }
  EXPECT_EQ(lines().size(), 2u);
  journal::Timeline again(folder_at(folder), 1);
  EXPECT_THAT(lines(), testing::ElementsAre("\"first\""));
  again.answered(ask("a", "third", 0, 1));
  EXPECT_TRUE(again.draw()) << "no whole step yet: nothing to draw";
  again.record(2);
  EXPECT_TRUE(again.draw());
  EXPECT_TRUE(std::filesystem::exists(folder + "/timeline.svg"));
}

TEST(RunJournal, AResumedRunHasEachStepOnce) {
  const std::string folder = fresh_folder("resume");
  const algorithms::Sample sample{
      .sample_id = 1, .prompt = "p", .completion = "c", .finish_reason = "stop", .parts = {}};
  const auto run = [&](std::int64_t from, std::int64_t to, double loss) {
    journal::RunJournal journal(folder_at(folder), "test", "sft", 0);
    journal.begin(6, from);
    for (std::int64_t step = from + 1; step <= to; ++step) {
      journal.sample(step, sample);
      journal.record(step, {{"loss", loss}, {"grad_norm", 1}});
    }
  };
  run(0, 5, 3.5);  // killed after step 5, the last checkpoint was of step 3
  run(3, 6, 2.5);
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  journal::for_each_line(folder + "/metrics.jsonl", [&](const Json& line, std::string_view) {
    steps.push_back(line.find("step")->integer());
    losses.push_back(line.find("loss")->number());
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(losses, (std::vector<double>{3.5, 3.5, 3.5, 2.5, 2.5, 2.5}));
  const std::string texts = text_of(folder + "/samples.txt");
  for (int step = 1; step <= 6; ++step) {
    const std::string head = cat("--- step ", step, ",");
    EXPECT_NE(texts.find(head), std::string::npos);
    EXPECT_EQ(texts.find(head), texts.rfind(head)) << step;
  }
  EXPECT_THAT(text_of(folder + "/plot.svg"), HasSubstr("grad_norm"));
}

TEST(RunJournal, ARunThatStartsOverHasStepZeroOnce) {
  const std::string folder = fresh_folder("step-zero");
  const auto run = [&](std::int64_t from, std::int64_t to, double reward) {
    journal::RunJournal journal(folder_at(folder), "test", "grpo", 0);
    journal.begin(6, from);
    if (from == 0) journal.record(0, {{"eval/reward", reward}});
    for (std::int64_t step = from + 1; step <= to; ++step) journal.record(step, {{"loss", 1}});
  };
  const auto lines = [&] {
    std::vector<std::string> out;
    journal::for_each_line(folder + "/metrics.jsonl",
                           [&](const Json&, std::string_view line) { out.emplace_back(line); });
    return out;
  };
  run(0, 1, 0.25);  // killed before its first checkpoint
  run(0, 2, 0.5);
  run(2, 3, 0);
  EXPECT_THAT(lines(),
              testing::ElementsAre("{\"step\":0,\"eval/reward\":0.5}", "{\"step\":1,\"loss\":1.0}",
                                   "{\"step\":2,\"loss\":1.0}", "{\"step\":3,\"loss\":1.0}"));
}

TEST(RunJournal, ARunThatStartsOverHasEachSampleOnceInBothFiles) {
  const std::string folder = fresh_folder("samples-over");
  const algorithms::Sample sample{
      .sample_id = 1, .prompt = "p", .completion = "c", .finish_reason = "stop", .parts = {}};
  const auto run = [&] {  // killed before its first checkpoint
    journal::RunJournal journal(folder_at(folder), "test", "grpo", 0);
    journal.begin(6, 0);
    journal.sample(1, sample);
    journal.record(1, {{"loss", 1}});
  };
  run();
  run();
  EXPECT_EQ(text_of(folder + "/samples.txt"), journal::sample_text(1, sample));
  EXPECT_EQ(text_of(folder + "/samples.jsonl"), journal::sample_line(1, sample));
}

}  // namespace
}  // namespace troupe::launch::journal_test
