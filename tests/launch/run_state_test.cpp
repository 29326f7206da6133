// `troupe info RUN`: whether the run is running, how far it is, and how it ended.
#include "launch/commands/info/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "tests/launch/program.h"

namespace troupe::launch::run_state_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

class States : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file_durably(cat(folder_, '/', name), text));
  }
  /// Three of ten steps, each of two seconds.
  void write_run(const std::string& end = "") const {
    write("metrics.jsonl",
          "{\"step\":0,\"eval/reward\":0.25}\n{\"step\":1,\"reward\":0.5}\n"
          "{\"step\":2,\"reward\":null}\n{\"step\":3,\"reward\":0.75,\"eval/reward\":0.5}\n");
    write("timings.jsonl",
          cat("{\"time\":\"t\",\"steps\":10}\n{\"step\":1,\"wall\":5}\n"
              "{\"step\":2,\"wall\":7,\"warnings\":[\"step 2: policy collapse: x\"]}\n"
              "{\"step\":3,\"wall\":9}\n",
              end));
  }
  std::string folder_ = scratch_folder();
};

TEST_F(States, ARunningOneHasAProcessAndATimeLeft) {
  write_run();
  const auto lock = value_or_throw(engine::checkpoint::DirectoryLock::acquire(folder_));
  const commands::RunState run = commands::read_run_state(folder_);
  EXPECT_EQ(run.state, commands::Progressed::running);
  EXPECT_EQ(run.process, ::getpid());
  EXPECT_EQ(run.step, 3);
  EXPECT_EQ(run.steps, 10);
  EXPECT_EQ(run.reward, 0.75);
  EXPECT_EQ(run.evaluated, 0.5);
  ASSERT_TRUE(run.seconds_left);
  EXPECT_DOUBLE_EQ(*run.seconds_left, 14);
  EXPECT_THAT(run.warnings, ElementsAre("step 2: policy collapse: x"));
  EXPECT_THAT(run_program("info " + folder_).out,
              AllOf(HasSubstr(cat("running: process ", ::getpid(), ", step 3 of 10")),
                    HasSubstr("last reward: 0.75"), HasSubstr("time left: about 0:14"),
                    HasSubstr("note: step 2: policy collapse")));
}

TEST_F(States, AnEndedOneSaysHow) {
  const std::pair<const char*, commands::Progressed> ends[] = {
      {"complete", commands::Progressed::complete},
      {"interrupted", commands::Progressed::interrupted},
      {"failed", commands::Progressed::failed}};
  for (const auto& [word, state] : ends) {
    write_run(cat("{\"time\":\"t\",\"ended\":\"", word, "\"}\n"));
    EXPECT_EQ(commands::read_run_state(folder_).state, state) << word;
    EXPECT_FALSE(commands::read_run_state(folder_).seconds_left);
  }
  write_run();
  EXPECT_EQ(commands::read_run_state(folder_).state, commands::Progressed::killed);
  write_run("{\"time\":\"t\",\"ended\":\"failed\"}\n{\"time\":\"t\",\"steps\":10}\n");
  EXPECT_EQ(commands::read_run_state(folder_).state, commands::Progressed::killed)
      << "in its second part";
  write("timings.jsonl", "{\"time\":\"t\"}\n{\"step\":1,\"wall\":5}\n");
  EXPECT_EQ(commands::read_run_state(folder_).state, commands::Progressed::unknown);
  write("timings.jsonl", "damaged\n{\"step\":\"x\",\"wall\":[]}\n{\"steps\":\"x\"}\n");
  EXPECT_EQ(commands::read_run_state(folder_).state, commands::Progressed::unknown);
}

// Asked while it runs, after it was killed, and after it was completed.
TEST_F(States, OfARunAreTrue) {
  write("rows.jsonl", std::string("{\"prompt\":\"q\",\"completion\":\"a\"}\n") +
                          "{\"prompt\":\"r\",\"completion\":\"b\"}\n");
  const std::string train =
      cat("'" TROUPE_PROGRAM "' train --algorithm sft --set model=", data("models/stories260k/hf"),
          " --set data.path=", folder_, "/rows.jsonl --set output=", folder_,
          "/run --set train.batch_size=2 --set train.threads=1 --set train.save_every=20 --set "
          "train.keep_last=2 --set train.steps=");
  const std::string info = cat("'" TROUPE_PROGRAM "' info ", folder_, "/run");
  write("script",
        cat(train, "100000 >", folder_, "/log 2>&1 & pid=$!\n", "for i in $(seq 3000); do [ -e ",
            folder_, "/run/latest ] && break; sleep 0.01; done\n", info, " >", folder_,
            "/running\nkill -9 $pid; wait $pid 2>/dev/null\n", info, " >", folder_,
            "/killed\necho $pid >", folder_, "/pid\n"));
  ASSERT_EQ(std::system(cat("bash ", folder_, "/script").c_str()), 0);
  const auto text = [&](const char* name) {
    return read_file(cat(folder_, '/', name)).value_or("");
  };
  const std::string pid = text("pid");
  EXPECT_THAT(text("running"),
              AllOf(HasSubstr(cat("running: process ", pid.substr(0, pid.size() - 1), ", step ")),
                    ContainsRegex("of 100000"), HasSubstr("time left: about ")));
  EXPECT_THAT(text("killed"), HasSubstr("killed: no process writes to it"));
  const std::string whole =
      cat(train, "2 --set output=", folder_, "/whole >", folder_, "/log 2>&1");
  ASSERT_EQ(std::system(whole.c_str()), 0) << text("log");
  EXPECT_THAT(run_program(cat("info ", folder_, "/whole")).out, HasSubstr("complete: step 2 of 2"));
}

}  // namespace
}  // namespace troupe::launch::run_state_test
