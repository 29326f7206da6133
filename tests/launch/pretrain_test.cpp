// Pretraining: batches of token files and of text, random initial weights, validation, resumption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include "algorithms/batch_rampup.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/pretraining_batches.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch::pretrain_test {
namespace {

namespace fs = std::filesystem;
using algorithms::BatchRampup;
using engine::data::Experience;
using engine::data::megatron::PretrainingSample;
using testing::HasSubstr;

TEST(BatchRampup, GrowsAsInMegatron) {
  // --rampup-batch-size 4 2 12 with a global batch size of 8: two increments of 6 samples each.
  const BatchRampup r{.start = 4, .increment = 2, .samples = 12};
  std::vector<std::int64_t> sizes;
  std::int64_t consumed = 0;
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(r.consumed(step, 8), consumed);
    sizes.push_back(r.size(consumed, 8));
    consumed += sizes.back();
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 6, 8, 8}));
  EXPECT_EQ(BatchRampup().size(0, 8), 8);
  EXPECT_EQ(BatchRampup().consumed(3, 8), 24);
}

TEST(PretrainingSequences, OfOneStreamHaveOneTokenMoreThanTheSample) {
  Experience out;
  recipes::append_sample({{5, 2, 6, 7}, {2, 6, 7, 8}, {1, 0, 1, 1}, {0, 1, 2, 3}}, 9, out);
  EXPECT_EQ(out.tokens, (std::vector<std::int32_t>{5, 2, 6, 7, 8}));
  EXPECT_EQ(out.mask, (std::vector<float>{0, 1, 0, 1, 1}));
  EXPECT_EQ(out.offsets, (std::vector<std::int32_t>{0, 5}));
}

TEST(PretrainingSequences, EndAtDocumentsWherePositionsRestart) {
  Experience out;
  recipes::append_sample({{5, 2, 6, 7}, {2, 6, 7, 8}, {1, 1, 1, 1}, {0, 1, 0, 1}}, 9, out);
  EXPECT_EQ(out.tokens, (std::vector<std::int32_t>{5, 2, 6, 6, 7, 8}));
  EXPECT_EQ(out.mask, (std::vector<float>{0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(out.offsets, (std::vector<std::int32_t>{0, 3, 6}));
}

/// A model folder without weights, and token files of stories.
class Pretraining : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::copy(data("models/stories260k/hf"), folder_ + "/model", fs::copy_options::recursive);
    fs::remove(folder_ + "/model/model.safetensors");
    const ProgramOutput said = run_program(cat(
        "preprocess --input ", data("datasets/pretrain/wiki_demo_head.txt"), " --output-prefix ",
        folder_, "/wiki --tokenizer-name-or-path ", folder_, "/model --append-eod"));
    ASSERT_EQ(said.code, 0) << said.err;
  }
  ProgramOutput train(const std::string& output, const std::string& more) const {
    return run_program(cat("train --algorithm pretrain --model ", folder_, "/model --output ",
                           folder_, "/", output,
                           " --set train.batch_size=4 --set train.max_length=32 --set "
                           "train.learning_rate=3e-3 --set train.threads=1 ",
                           more));
  }
  std::string over_tokens(int steps) const {
    return cat("--data ", folder_, "/wiki_text_document --set train.steps=", steps,
               " --set pretrain.split=90,10 --set pretrain.eval_batches=2 --set eval.every=4 ");
  }
  std::string weights(const std::string& output, int step) const {
    return value_or_throw(
        read_file(cat(folder_, "/", output, "/checkpoint-", step, "/model.safetensors")));
  }
  std::vector<Json> metrics(const std::string& output) const {
    return json_lines(value_or_throw(read_file(cat(folder_, "/", output, "/metrics.jsonl"))));
  }
  std::string folder_ = scratch_folder();
};

TEST_F(Pretraining, LearnsFromRandomWeights) {
  const ProgramOutput said = train("run", over_tokens(8));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto lines = metrics("run");
  ASSERT_EQ(lines.size(), 8u);
  const double first = lines[3].find("eval/loss")->number(),
               last = lines[7].find("eval/loss")->number();
  EXPECT_NEAR(lines[0].find("loss")->number(), std::log(512), 0.2);
  EXPECT_LT(last, first);
  EXPECT_NEAR(lines[7].find("eval/perplexity")->number(), std::exp(last), 1e-9 * std::exp(last));
}

TEST_F(Pretraining, ContinuesWithTheSameBits) {
  ASSERT_EQ(train("whole", over_tokens(6)).code, 0);
  // The learning rate depends on the steps of the run, so the first part is a checkpoint of it.
  ASSERT_EQ(train("parts", cat(over_tokens(6), "--set train.save_every=3")).code, 0);
  fs::remove_all(folder_ + "/parts/checkpoint-6");
  fs::remove(folder_ + "/parts/latest");
  const ProgramOutput said = train("parts", cat(over_tokens(6), "--set train.save_every=3"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("resuming from"));
  EXPECT_TRUE(weights("whole", 6) == weights("parts", 6));
}

TEST_F(Pretraining, StartsFromTheSameWeightsOnEveryGrid) {
  for (const char* grid : {"1", "2"})
    ASSERT_EQ(train(cat("tp", grid), cat(over_tokens(1),
                                         "--set train.learning_rate=0 --set "
                                         "parallel.tp=",
                                         grid))
                  .code,
              0);
  EXPECT_TRUE(weights("tp1", 1) == weights("tp2", 1));
}

TEST_F(Pretraining, BatchesGrow) {
  ASSERT_EQ(train("run", cat(over_tokens(4),
                             "--set train.batch_rampup.start=2 --set "
                             "train.batch_rampup.increment=2 --set train.batch_rampup.samples=4"))
                .code,
            0);
  std::vector<double> sizes;
  for (const Json& line : metrics("run")) sizes.push_back(line.find("batch_size")->number());
  EXPECT_EQ(sizes, (std::vector<double>{2, 2, 4, 4}));
}

TEST_F(Pretraining, ReadsTextWithoutPreprocessing) {
  const ProgramOutput said =
      train("run", cat("--data ", data("datasets/pretrain/tinystories_train_head.txt"),
                       " --set data.split=0.2 --set train.steps=3"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(metrics("run")[2].find("eval/perplexity"), nullptr);
}

/// The fields of a log line, "NAME: VALUE"; the numbers of "iteration" as they are.
std::map<std::string, std::string> fields_of(const std::string& line) {
  std::map<std::string, std::string> found;
  for (std::size_t begin = line.find("] ") + 2, end; begin < line.size(); begin = end + 2) {
    end = std::min(line.find(" |", begin), line.size());
    const std::string field = line.substr(begin, end - begin);
    const auto colon = std::min(field.rfind(": "), field.size());
    const auto value = field.find_first_not_of(' ', std::min(colon + 2, field.size()));
    const auto name = field.find_first_not_of(' ');
    if (name == std::string::npos) continue;
    found[field.substr(name, colon - name)] = value == std::string::npos ? "" : field.substr(value);
  }
  return found;
}
/// A line with every digit as 0, and numbers of any length where Megatron writes any.
std::string form_of(const std::string& line) {
  std::string out;
  for (const char c : line) out += c >= '0' && c <= '9' ? '0' : c == '+' ? '-' : c;
  for (const char* free : {"000.0 |", "00.0 |", "000.000 |", "00.000 |"})
    for (std::size_t at; (at = out.find(free)) != std::string::npos;) out.erase(at, 1);
  // Right-aligned numbers fill their width with spaces.
  for (std::size_t at; (at = out.find(" 0")) != std::string::npos;) out.replace(at, 2, "00");
  return out;
}
std::vector<std::string> log_lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find("] iteration") != std::string::npos) found.push_back(line);
  return found;
}

TEST_F(Pretraining, PrintsMegatronsLogLines) {
  const ProgramOutput said =
      train("run", cat(over_tokens(4),
                       "--set train.log_style=megatron --set train.log_every=2 --set "
                       "train.schedule=cosine --set train.warmup_steps=3"));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto lines = log_lines(said.out);
  ASSERT_EQ(lines.size(), 2u) << said.out;
  const auto steps = metrics("run");
  const auto number = [&](std::size_t step, const char* name) {
    return steps[step - 1].find(name)->number();
  };
  const auto printed = [](const char* format, double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, format, value);
    return std::string(buffer);
  };
  for (const std::size_t step : {2u, 4u}) {
    auto fields = fields_of(lines[step / 2 - 1]);
    EXPECT_EQ(fields["consumed samples"], cat(4 * step));
    EXPECT_EQ(fields["global batch size"], "4");
    EXPECT_EQ(fields["loss scale"], "1.0");
    EXPECT_EQ(fields["lm loss"],
              printed("%.6E", (number(step - 1, "loss") + number(step, "loss")) / 2));
    EXPECT_EQ(fields["grad norm"], printed("%.3f", number(step, "grad_norm")));
    // The schedule has advanced: the rate of the step behind it, which is the least at the end.
    if (step == 2)
      EXPECT_EQ(fields["learning rate"], printed("%.6E", number(3, "learning_rate")));
    else
      EXPECT_LT(std::stod(fields["learning rate"]), number(4, "learning_rate"));
    EXPECT_FALSE(fields.contains("throughput per GPU (TFLOP/s/GPU)"));
  }
  EXPECT_THAT(said.out,
              testing::ContainsRegex(
                  R"( validation loss at iteration 4 on validation set \| lm loss value: )"
                  R"([0-9]\.[0-9]{6}E[+-][0-9]{2} \| lm loss PPL: )"));
}

TEST_F(Pretraining, PrintsLinesOfTheFormOfMegatronsOwn) {
  const ProgramOutput said = train("run", cat(over_tokens(2),
                                              "--set train.log_style=megatron --set "
                                              "train.log_throughput=true"));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto ours = log_lines(said.out);
  const auto theirs = log_lines(value_or_throw(read_file(data("megatron/log_lines.txt"))));
  ASSERT_EQ(theirs.size(), 2u);
  ASSERT_EQ(ours.size(), 2u) << said.out;
  EXPECT_EQ(form_of(ours[0]), form_of(theirs[0]));
  // Without the throughput, the line has one field less.
  std::string less = ours[0];
  const auto at = less.find(" throughput");
  less.erase(at, less.find('|', at) + 1 - at);
  EXPECT_EQ(form_of(less), form_of(theirs[1]));
}

// The commands of docs/pretraining.md, over fewer steps.
TEST_F(Pretraining, WorksAsItsPageSays) {
  std::string text = value_or_throw(read_file(data("datasets/pretrain/wiki_demo_head.txt")));
  for (std::size_t at = 0; (at = text.find(". ", at)) != std::string::npos;)
    text.replace(at, 2, ".\n");
  value_or_throw(write_file_durably(folder_ + "/wiki.txt", text));
  const std::string page = value_or_throw(read_file(TROUPE_DOCS "/pretraining.md"));
  const auto begin = page.find("```\n") + 4;
  std::string commands = page.substr(begin, page.find("```", begin) - begin);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"--steps 1000", "--steps 4"},
                                                        {"eval.every=100 ", "eval.every=2 "},
                                                        {"troupe ", "'" TROUPE_PROGRAM "' "}})
    for (std::size_t at = 0; (at = commands.find(from, at)) != std::string::npos; at += to.size())
      commands.replace(at, from.size(), to);
  const int status =
      std::system(cat("set -e; cd '", folder_, "'; exec >out 2>&1; ", commands).c_str());
  EXPECT_EQ(status, 0) << value_or_throw(read_file(folder_ + "/out"));
  EXPECT_TRUE(fs::exists(folder_ + "/runs/wiki/checkpoint-4/model.safetensors"));
  EXPECT_THAT(value_or_throw(read_file(folder_ + "/out")), HasSubstr("already complete"));
}

TEST_F(Pretraining, RefusesContradictions) {
  ProgramOutput said = train("run", cat("--data ", folder_, "/wiki_text_document"));
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("give the length of the run: --steps N"));
  said = train("run", cat(over_tokens(2), "--set lora.rank=4"));
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("needs a trained base"));
  said = train("run", cat(over_tokens(2), "--set init.weights=file"));
  EXPECT_NE(said.code, 0);
}

TEST_F(Pretraining, RefusesTokensOfAnotherTokenizer) {
  const std::string path = folder_ + "/model/config.json";
  Json config = value_or_throw(read_json(path));
  config.set("vocab_size", 300);
  value_or_throw(write_file_durably(path, config.dump()));
  const ProgramOutput said = train("run", over_tokens(2));
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr("expected one below 300"));
}

}  // namespace
}  // namespace troupe::launch::pretrain_test
