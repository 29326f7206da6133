// troupe generate by the ranks of mpirun: rank 0 reads and prints what one process does, and all
// ranks end with it.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"
#include "tests/system/child.h"
#include "tests/system/processes.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

const std::string model = cat(" --threads 1 --model ", data("models/stories260k/hf"));

class GenerateGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  }
  // OpenMPI does not free its memory at exit, which AddressSanitizer reports as leaks.
  static std::string mpirun(int ranks, const std::string& arguments) {
    return cat("ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n ", ranks,
               " '", TROUPE_PROGRAM, "' ", arguments);
  }
  static ProgramOutput run(int ranks, const std::string& arguments, const std::string& input = "") {
    return run_as("/usr/bin/env", mpirun(ranks, arguments), input);
  }
};

const char* const lines =
    "{\"prompt\":\"Once upon a time\"}\n"
    "not JSON\n"
    "{\"prompt\":\"Lily\",\"temperature\":0.8,\"seed\":3,\"top_logprobs\":2}\n"
    "{\"prompt\":\"The dog\",\"num_beams\":3}\n"
    "{\"ids\":[900]}\n"
    "{\"prompt\":\"One day\",\"max_new_tokens\":4000}\n";

TEST_F(GenerateGroup, StagesAnswerLinesAsOneProcessDoes) {
  const std::string arguments = "generate --max-new-tokens 12 --lookup 3" + model;
  const ProgramOutput one = run_program(arguments, lines),
                      stages = run(2, arguments + " --pp 2", lines);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(stages.code, 0) << stages.err;
  EXPECT_EQ(json_lines(one.out).size(), 6u);
  EXPECT_EQ(stages.out, one.out);
}

TEST_F(GenerateGroup, PartsOfMatricesAndStagesGiveTheSameText) {
  const std::string arguments = "generate --prompt 'Once upon a time' --max-new-tokens 20" + model;
  const ProgramOutput one = run_program(arguments), four = run(4, arguments + " --tp 2 --pp 2");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(four.code, 0) << four.err;
  EXPECT_EQ(four.out, one.out);
}

TEST_F(GenerateGroup, TasksAnswerAsOneProcessDoes) {
  const std::string arguments = "generate --task do_sample --max-new-tokens 5 --seed 2" + model;
  const ProgramOutput one = run_program(arguments, lines),
                      stages = run(3, arguments + " --pp 3", lines);
  EXPECT_EQ(stages.code, one.code) << stages.err;
  EXPECT_EQ(stages.out, one.out);
}

TEST_F(GenerateGroup, AChatEndsWithItsInput) {
  const std::string arguments = "chat --template chatml --greedy --max-new-tokens 5" + model;
  const std::string dialogue = "Hello\n/clear\nOnce upon a time\n";
  const ProgramOutput one = run_program(arguments, dialogue),
                      stages = run(2, arguments + " --pp 2", dialogue);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(stages.code, 0) << stages.err;
  EXPECT_EQ(stages.out, one.out);
}

TEST_F(GenerateGroup, OtherNumbersOfRanksAreRefused) {
  const ProgramOutput alone = run_program("generate --prompt a --pp 2" + model);
  EXPECT_NE(alone.code, 0);
  EXPECT_THAT(alone.err, HasSubstr("expected 2 ranks, found one process"));
  EXPECT_THAT(alone.err, HasSubstr("mpirun -n 2"));
  const ProgramOutput three = run(3, "generate --prompt a --pp 2" + model);
  EXPECT_NE(three.code, 0);
  EXPECT_THAT(three.err, HasSubstr("pp 2 does not match the 3 ranks that were started"));
  const ProgramOutput layers = run(6, "generate --prompt a --pp 6" + model);
  EXPECT_NE(layers.code, 0);
  EXPECT_THAT(layers.err, HasSubstr("allowed: 1 to 5"));
  EXPECT_THAT(run(2, "generate --prompt a --pp 2 --model /none").err, HasSubstr("/none"));
}

TEST_F(GenerateGroup, CtrlCEndsAllRanks) {
  const std::string folder = scratch_folder(), log = folder + "/log",
                    mark = cat("TROUPE_TEST_MARK=", folder);
  test::Child child(
      cat("env ", mark, " ",
          mpirun(2, cat("generate --prompt 'Once upon a time' --temperature 1 --n 1000 --pp 2",
                        model))),
      log);
  ASSERT_TRUE(child.until([&] { return read_file(log).value_or("").size() > 100; }));
  child.signal(SIGINT);
  EXPECT_NE(child.wait(), 0);
  EXPECT_TRUE(test::processes_with(mark).empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe::launch
