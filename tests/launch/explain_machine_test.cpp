// The machine of `troupe explain`: the kept rate, machines that the options describe, and the time
// and memory that follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/models/flops.h"
#include "launch/commands/explain/rate_cache.h"
#include "launch/commands/explain/run_time.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch::explain_machine_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const commands::RateKey key{"Some CPU @ 2 GHz", "avx2", 4, "f32"};

TEST(RateCache, FindsWhatItStoredForTheSameProcessorThreadsAndType) {
  const std::string one = commands::with_rate("", key, {1.5e11, "2026-11-27"}),
                    two = commands::with_rate(one, {key.processor, "avx2", 8, "f32"},
                                              {3e11, "2026-11-28"});
  EXPECT_FALSE(value_or_throw(commands::find_rate("", key)));
  const auto found = value_or_throw(commands::find_rate(two, key));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->flops, 1.5e11);
  EXPECT_EQ(found->date, "2026-11-27");
  EXPECT_EQ(value_or_throw(commands::find_rate(two, {key.processor, "avx2", 8, "f32"}))->flops,
            3e11);
  EXPECT_FALSE(value_or_throw(commands::find_rate(two, {key.processor, "avx2", 4, "bf16"})));
  EXPECT_FALSE(value_or_throw(commands::find_rate(two, {key.processor, "avx512", 4, "f32"})));
  EXPECT_FALSE(value_or_throw(commands::find_rate(two, {"Other CPU", "avx2", 4, "f32"})));
  EXPECT_EQ(
      value_or_throw(commands::find_rate(commands::with_rate(two, key, {9, "2026-12-01"}), key))
          ->flops,
      9)
      << "a rate replaces the former one";
}

TEST(RateCache, RefusesWhatIsNoRate) {
  const std::string good = commands::with_rate("", key, {1.5e11, "2026-11-27"});
  for (const std::string& text :
       {std::string("x"), std::string("{"), std::string("[]"), std::string("{}"),
        std::string("{\"format\":2,\"rates\":[]}"), std::string("{\"format\":1,\"rates\":[1]}"),
        std::regex_replace(good, std::regex("1.5e\\+?11|150000000000(\\.0)?"), "-1"),
        std::regex_replace(good, std::regex("2026-11-27"), "\\u001b[31m"),
        std::regex_replace(good, std::regex("\"threads\":4"), "\"threads\":\"4\""),
        good.substr(0, good.size() / 2), std::string(100000, '[')}) {
    const auto found = commands::find_rate(text, key);
    ASSERT_FALSE(found) << text.substr(0, 200);
    EXPECT_EQ(found.error().code, Errc::corrupt);
    EXPECT_EQ(commands::with_rate(text, key, {1.5e11, "2026-11-27"}), good) << "it is replaced";
  }
}

TEST(RateCache, IsBounded) {
  std::string text;
  for (int threads = 1; threads <= 300; ++threads)
    text = commands::with_rate(text, {"p", "i", threads, "f32"}, {1, "2026-11-27"});
  EXPECT_FALSE(value_or_throw(commands::find_rate(text, {"p", "i", 44, "f32"})));
  EXPECT_TRUE(value_or_throw(commands::find_rate(text, {"p", "i", 45, "f32"})));
  EXPECT_TRUE(value_or_throw(commands::find_rate(text, {"p", "i", 300, "f32"})));
}

class Machine : public testing::Test {
 protected:
  Machine() {
    std::string rows;
    for (int i = 0; i < 40; ++i)
      rows += cat("{\"prompt\":\"Tell a story, number ", i, ".\",\"completion\":\" There were ", i,
                  " cats.\",\"answer\":\"the\"}\n");
    write("rows.jsonl", rows);
  }
  void write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file_durably(cat(folder_, '/', name), text));
  }
  std::string read(const std::string& name) const {
    return read_file(cat(folder_, '/', name)).value_or("");
  }
  std::string arguments(const std::string& algorithm, const std::string& more = "") const {
    return cat("explain --algorithm ", algorithm, " --set model=", data("models/stories260k/hf"),
               " --set data.path=", folder_, "/rows.jsonl --set output=", folder_,
               "/out --set train.batch_size=4 --set train.threads=1 ", more);
  }
  /// With the user's cache in `cache`, below the folder unless the path is absolute.
  ProgramOutput explain(const std::string& more, const std::string& cache = "cache",
                        const std::string& algorithm = "sft") const {
    const std::string path = cache.starts_with('/') ? cache : cat(folder_, '/', cache);
    const std::string command =
        cat("XDG_CACHE_HOME=", path, " '" TROUPE_PROGRAM "' ", arguments(algorithm, more), " >",
            folder_, "/stdout 2>", folder_, "/stderr");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("stdout"), read("stderr")};
  }
  /// Replaces the rate of this machine by 2 GFLOP/s of a past day.
  void plant() const {
    write("cache/troupe/rates.json",
          std::regex_replace(
              std::regex_replace(read("cache/troupe/rates.json"), std::regex("\"flops\":[^,]*"),
                                 "\"flops\":2000000000"),
              std::regex("\"date\":\"[^\"]*"), "\"date\":\"2020-01-02"));
  }
  std::string folder_ = scratch_folder();
};

/// The line of the rate; others depend on the free memory and disk space.
std::string rate_line(const ProgramOutput& said) {
  const auto at = said.out.find("GFLOP/s"), begin = said.out.rfind('\n', at);
  return at == std::string::npos ? "" : said.out.substr(begin, said.out.find('\n', at) - begin);
}

const std::string rate_text = "GFLOP/s in f32 on 1 thread, measured on ";

TEST_F(Machine, IsMeasuredOnceAndAgainOnRequest) {
  const ProgramOutput first = explain("");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, ContainsRegex(rate_text + "20[0-9-]+\n"));
  EXPECT_EQ(rate_line(explain("")), rate_line(first)) << "the kept rate, whatever the machine does";
  plant();
  EXPECT_THAT(explain("").out, HasSubstr("2.0 " + rate_text + "2020-01-02"));
  EXPECT_THAT(explain("--measure").out, Not(HasSubstr("2020-01-02")));
  EXPECT_THAT(explain("").out, Not(HasSubstr("2020-01-02"))) << "the new rate was kept";
}

TEST_F(Machine, ADamagedCacheIsReplacedWithAWarning) {
  std::filesystem::create_directories(folder_ + "/cache/troupe");
  write("cache/troupe/rates.json", "not ours\n");
  const ProgramOutput said = explain("");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.err, AllOf(HasSubstr("rates.json: expected the rates that troupe explain"),
                              HasSubstr("it is written again")));
  const ProgramOutput again = explain("");
  EXPECT_THAT(again.err, Not(HasSubstr("rates.json")));
  EXPECT_EQ(rate_line(again), rate_line(said));
}

TEST_F(Machine, ACacheThatCannotBeWrittenIsNoError) {
  for (const char* cache : {"/proc/none", "/dev/null"}) {
    const ProgramOutput said = explain("", cache);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.err, Not(HasSubstr("rates.json")));
    EXPECT_THAT(said.out, HasSubstr(rate_text));
  }
}

TEST_F(Machine, OfTheOptionsGivesTheSameBytesTenTimes) {
  const std::string other = "--gflops 3000 --cores 64 --memory 256GiB ";
  const ProgramOutput first = explain(other);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("256.0 GiB, --memory"),
                               HasSubstr("46.9 GFLOP/s on 1 of 64 cores (--gflops, --cores)"),
                               Not(HasSubstr("free disk space"))));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(explain(other).out, first.out);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/cache")) << "nothing was measured";
}

TEST_F(Machine, OfTheOptionsRefusesWhatItCannotHold) {
  const ProgramOutput said = explain("--gflops 100 --memory 1MiB");
  EXPECT_EQ(said.code, 10);
  EXPECT_THAT(said.err,
              AllOf(HasSubstr("1.0 MiB are available (--memory)"), HasSubstr("What would fit: ")));
  EXPECT_EQ(explain("--gflops 0").code, 2);
  EXPECT_EQ(explain("--memory many").code, 2);
  EXPECT_EQ(explain("--gflops 1 --measure").code, 2);
}

TEST_F(Machine, WithMoreCoresIsFasterInProportion) {
  ASSERT_EQ(explain("").code, 0);
  plant();
  EXPECT_THAT(explain("--cores 10 --set train.threads=0").out,
              HasSubstr("GFLOP/s in f32 on 10 threads, in proportion to "));
}

TEST_F(Machine, OfASampledRunGivesRangesOfTokensAndTime) {
  const ProgramOutput said = explain(
      "--gflops 1 --set reward=exact_match --set rollout.max_new_tokens=100 --set "
      "grpo.group_size=4 --set train.steps=10 --set train.save_every=2 --set train.max_length=256",
      "cache", "grpo");
  ASSERT_EQ(said.code, 0) << said.err;
  // Seven of ten batches have payloads of 16 samples of at most 100 tokens.
  EXPECT_THAT(said.out, testing::ContainsRegex(
                            "ledger +up to 229.7 KiB of samples, about 35.2 KiB of rows\n"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      said.out, found, std::regex("tokens +([0-9,]+) to ([0-9,]+), by the lengths of 160 comp")))
      << said.out;
  const auto number = [](std::string text) {
    std::erase(text, ',');
    return std::stoll(text);
  };
  EXPECT_EQ(number(found[2]) - number(found[1]), 160 * 99) << "1 to 100 tokens each";
}

TEST_F(Machine, ItsGroupsOfAClusterAreEstimated) {
  write("cluster.yaml",
        "groups: [{role: policy, parallel: {tp: 2}}, {role: rollout, count: 2}, "
        "{role: verifier}]\n");
  const std::string cluster = cat("launch --cluster ", folder_, "/cluster.yaml -- ",
                                  arguments("grpo",
                                            "--set reward=exact_match --gflops 10 --set "
                                            "train.steps=4 --set grpo.beta=0 "));
  const ProgramOutput said = run_program(cluster + "--memory 1GiB");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out,
              AllOf(ContainsRegex("policy: weights, gradients, optimizer state +4.0 MiB, 2.0 MiB"),
                    HasSubstr("rollout-1: weights"), ContainsRegex("time +[0-9.]+ s to ")));
  EXPECT_EQ(run_program(cluster + "--memory 7MiB").code, 10);
}

TEST_F(Machine, ItsRunOverTokenFilesIsEstimated) {
  write("text.jsonl", "{\"text\":\"once upon a time there was a cat\"}\n");
  const ProgramOutput made =
      run_program(cat("preprocess --input ", folder_, "/text.jsonl --output-prefix ", folder_,
                      "/t --tokenizer-name-or-path ", data("models/stories260k/hf"),
                      " --tokenizer-type PretrainedFromHF --workers 1 --append-eod"));
  ASSERT_EQ(made.code, 0) << made.err;
  const ProgramOutput said = run_program(
      cat("explain --algorithm pretrain --set model=", data("models/stories260k/hf"),
          " --set data.path=", folder_, "/t_text_document --set output=", folder_,
          "/out --set train.batch_size=4 --set train.max_length=32 --set train.steps=10 --gflops 1"
          " --set pretrain.split=1"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(
      said.out,
      AllOf(ContainsRegex("steps +10, batch size 4, "), ContainsRegex("tokens +1,280 in the run"),
            ContainsRegex("time +[0-9.]+ s to "), ContainsRegex("checkpoints +")));
}

// 2 FLOPs for each multiplied parameter and token of a forward pass, 6 with the backward pass.
TEST(TimeOfARun, IsNoShorterThanItsProducts) {
  const auto config =
      value_or_throw(recipes::resolve({.algorithm = "sft",
                                       .sets = {cat("model=", data("models/stories260k/hf")),
                                                "output=O", "data.path=D"},
                                       .check_files = false}))
          .config;
  const auto spec = value_or_throw(recipes::spec_of(config, config.model));
  const commands::RunSize size{.steps = 10, .least = {1000, 0}, .most = {1000, 0}};
  const auto time = commands::time_of_run(config, spec, size, 1e9);
  EXPECT_NEAR(time.least, 6e-6 * static_cast<double>(spec.parameter_count()), 0.01 * time.least);
  EXPECT_GT(time.most, 2 * time.least);
}

}  // namespace
}  // namespace troupe::launch::explain_machine_test
