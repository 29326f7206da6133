// Profiled runs in every placement write a trace and a table per rank; the files of the run do not
// change.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Profiles : public SystemRuns {
 protected:
  std::string profiled(const std::string& algorithm, const std::string& output,
                       const std::string& more = "") const {
    return arguments(algorithm, output,
                     cat("--set train.steps=4 --set train.save_every=0 --profile "
                         "--profile-step-start 2 --profile-step-end 4 ",
                         more));
  }

  /// Counts the spans of a trace by name; fails if two spans of a thread overlap without nesting.
  std::map<std::string, int> spans_of(const std::string& file) const {
    const auto trace = read_json(path(file));
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().what);
    std::map<std::string, int> names;
    if (!trace) return names;
    std::map<std::int64_t, std::vector<std::pair<double, double>>>
        spans;  // by thread: begin and end
    for (const Json& event : trace->find("traceEvents")->array()) {
      if (event.find("ph")->string() != "X") continue;
      ++names[event.find("name")->string()];
      const double begin = event.find("ts")->number();
      spans[event.find("tid")->integer()].emplace_back(begin,
                                                       -(begin + event.find("dur")->number()));
    }
    for (auto& [thread, all] : spans) expect_nested(all);
    return names;
  }

  std::string read(const std::string& file) const { return value_or_throw(read_file(path(file))); }

 private:
  static void expect_nested(std::vector<std::pair<double, double>>& spans) {
    constexpr double rounding = 1e-3;  // microseconds: a nanosecond
    std::sort(spans.begin(), spans.end());
    std::vector<double> ends;
    for (const auto& [begin, minus_end] : spans) {
      while (!ends.empty() && ends.back() <= begin + rounding) ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(-minus_end, ends.back() + rounding);
      }
      ends.push_back(-minus_end);
    }
  }
};

TEST_F(Profiles, ARunWritesATraceAndATableAndLearnsTheSame) {
  run(arguments("sft", "plain", "--set train.steps=4 --set train.save_every=0"));
  const std::string said = run(profiled(
      "sft", "run",
      "--profile-with-stack --profile-with-memory --profile-with-cpu --profile-record-shapes"));
  EXPECT_EQ(losses("run"), losses("plain"));
  auto spans = spans_of("run/profile/rank0.trace.json");
  EXPECT_EQ(spans["step 2"], 1);
  EXPECT_EQ(spans["step 3"], 1);
  EXPECT_EQ(spans.count("step 1") + spans.count("step 4"), 0u);
  EXPECT_EQ(spans["forward_backward"], 2);
  EXPECT_EQ(spans["optimizer"], 2);
  for (const char* name :
       {"gemm", "attention", "head", "head_backward", "adamw", "forward", "backward"})
    EXPECT_GT(spans[name], 0) << name;
  const std::string table = read("run/profile/rank0.operators.csv");
  EXPECT_NE(table.find("operator,gemm,forward_backward/forward,\"["), std::string::npos);
  EXPECT_NE(said.find("Profile of rank 0: 2 steps (2 to 3)"), std::string::npos) << said;
  EXPECT_NE(said.find(read("run/profile/rank0.operators.txt")), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("run/.profile_steps")));
}

TEST_F(Profiles, SamplesAreGeneratedInAPhaseOfTheirOwn) {
  run(profiled("grpo", "run"));
  auto spans = spans_of("run/profile/rank0.trace.json");
  for (const char* name : {"generate", "score", "sample", "forward_backward"})
    EXPECT_GT(spans[name], 0) << name;
}

TEST_F(Profiles, RanksOfThreadsAndOfMpirunWriteAFileEach) {
  const std::string grid = "--set parallel.dp=2 --profile-level level2 ";
  run(profiled("sft", "threads", grid));
  EXPECT_GT(spans_of("threads/profile/rank0.trace.json")["all_gather"], 0);
  EXPECT_GT(spans_of("threads/profile/rank1.trace.json")["gemm"], 0);
  run(profiled("sft", "one", grid + "--profile-ranks 1 --profile-save-path " + path("elsewhere")));
  EXPECT_TRUE(std::filesystem::exists(path("elsewhere/rank1.operators.txt")));
  EXPECT_FALSE(std::filesystem::exists(path("elsewhere/rank0.operators.txt")));
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  Child mpirun(
      cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n 2 ",
          command(profiled("sft", "mpi", grid))),
      log());
  ASSERT_EQ(mpirun.wait(), 0) << "see " << log();
  auto first = spans_of("mpi/profile/rank0.trace.json"),
       second = spans_of("mpi/profile/rank1.trace.json");
  EXPECT_GT(first["all_gather"], 0);
  EXPECT_EQ(first["optimizer"], 2);
  EXPECT_EQ(second["optimizer"], 2);
  expect_same_bytes("threads", "mpi");
}

TEST_F(Profiles, GroupsOfALaunchWriteFilesUnderTheirNames) {
  ASSERT_TRUE(write_file_durably(path("cluster.yaml"),
                                 "groups:\n  - {role: policy}\n  - {role: rollout}\n  - {role: "
                                 "reference}\n  - {role: verifier}\n"));
  const std::string train = profiled("grpo", "run");
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ", train));
  EXPECT_EQ(spans_of("run/profile/policy.rank0.trace.json")["optimizer"], 2);
  EXPECT_GT(spans_of("run/profile/rollout.rank0.trace.json")["generate"], 0);
  EXPECT_GT(spans_of("run/profile/reference.rank0.trace.json")["score"], 0);
}

TEST_F(Profiles, ARankThatIsNotThereIsRefusedBeforeTheRun) {
  const auto said = launch::run_program(profiled("sft", "run", "--profile-ranks 1"));
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("profile.ranks: there is no rank 1"), std::string::npos) << said.err;
}

}  // namespace
}  // namespace troupe::test
