#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "launch/cluster/assignment.h"
#include "launch/cluster/cluster_file.h"
#include "launch/cluster/process_log.h"
#include "launch/cluster/supervisor.h"
#include "launch/cluster/worker_command.h"
#include "launch/recipes/resolve.h"
#include "launch/run/exit_code.h"
#include "tests/launch/program.h"

namespace troupe::launch::cluster_test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

config::RunConfig grpo(double beta = 0.1) {
  config::RunConfig config;
  config.algorithm = "grpo";
  config.model = "M";
  config.output = "O";
  config.data.paths = {"D"};
  config.grpo.loss.beta = beta;
  config.reward = {{"exact_match", 1, "", {}}};
  return config;
}

config::RunConfig of(const std::string& algorithm) {
  config::RunConfig config = grpo(0);
  config.algorithm = algorithm;
  return config;
}

constexpr const char* whole = R"(groups:
  - {role: policy, parallel: {tp: 2, dp: 3, pp: 4, zero: 1, vpp: 2, overlap: all}}
  - {role: reference}
  - {role: rollout, count: 2}
  - {role: verifier, count: 1}
)";

Result<std::vector<cluster::GroupSpec>> parse_groups(std::string_view text,
                                                     const std::string& where,
                                                     const config::RunConfig& config) {
  auto file = cluster::parse_cluster(text, where, config);
  RETURN_IF_ERROR(file);
  return std::move(file->groups);
}

TEST(ClusterFile, GroupsBecomeNodesWithNames) {
  const auto groups = parse_groups(whole, "cluster.yaml", grpo());
  ASSERT_TRUE(groups) << groups.error().what;
  std::vector<std::string> names;
  for (const cluster::NodeSpec& node : cluster::nodes_of(*groups)) names.push_back(node.name);
  EXPECT_THAT(names,
              testing::ElementsAre("policy", "reference", "rollout-0", "rollout-1", "verifier"));
  EXPECT_EQ(engine::parallel::Grid(groups->front().parallel),
            (engine::parallel::Grid{.dp = 3, .tp = 2, .pp = 4}));
  EXPECT_EQ(groups->front().parallel.zero, 1);
  EXPECT_EQ(groups->front().parallel.vpp, 2);
  EXPECT_EQ(groups->front().parallel.overlap, engine::train::Overlap::all);
  EXPECT_EQ(engine::parallel::Grid(groups->back().parallel), (engine::parallel::Grid{}));
  EXPECT_EQ(groups->front().origin, "cluster.yaml:2");
}

TEST(ClusterFile, OneRolloutHasNoNumber) {
  const auto groups =
      parse_groups("groups: [{role: policy}, {role: rollout}, {role: verifier}]", "c", grpo(0));
  ASSERT_TRUE(groups) << groups.error().what;
  EXPECT_EQ(cluster::nodes_of(*groups)[1].name, "rollout");
}

TEST(ClusterFile, GroupsTakeTheKeysOfParallel) {
  config::RunConfig run = of("ppo");
  run.parallel.sp = true;
  const auto groups = value_or_throw(parse_groups(
      R"(groups:
  - role: policy
    parallel: {tp: 2, cp: 4, cp_algorithm: hybrid, ulysses_degree: 2, zero: 1, overlap: all,
               order: tp-cp-pp-dp}
  - {role: critic, parallel: {pp: 2, vpp: 2, layers: [2, 1, 1, 2], noop_layers: [0], overlap: none}}
  - {role: rollout, parallel: {tp: 2, pp: 2, layers: [3, 2]}}
  - {role: verifier}
  - {role: reference, parallel: {cp: 2, cp_algorithm: ulysses}})",
      "c", run));
  const config::ParallelConfig &policy = groups[0].parallel, &critic = groups[1].parallel;
  EXPECT_EQ(engine::parallel::Grid(groups[0].parallel),
            (engine::parallel::Grid{
                .tp = 2, .cp = 4, .order = engine::parallel::AxisOrder::tp_cp_pp_dp}));
  EXPECT_TRUE(policy.sp) << "the run sets it";
  EXPECT_EQ(config::ulysses_degree(policy), 2);
  EXPECT_EQ(engine::parallel::Grid(groups[1].parallel),
            (engine::parallel::Grid{.pp = 2, .order = engine::parallel::AxisOrder::tp_cp_pp_dp}));
  EXPECT_EQ(critic.layers, (std::vector<std::int64_t>{2, 1, 1, 2}));
  EXPECT_EQ(critic.noop_layers, std::vector<std::int64_t>{0});
  EXPECT_EQ(critic.vpp, 2);
  EXPECT_EQ(critic.zero, 1) << "that of the policy";
  EXPECT_EQ(critic.overlap, engine::train::Overlap::none);
  EXPECT_FALSE(critic.sp);
  const auto nodes = cluster::nodes_of(groups);
  EXPECT_EQ(cluster::config_on(nodes[1], run).parallel.vpp, 2);
  const config::ParallelConfig rollout = cluster::config_on(nodes[2], run).parallel,
                               reference = cluster::config_on(nodes[4], run).parallel;
  EXPECT_EQ(engine::parallel::Grid(nodes[2].parallel), (engine::parallel::Grid{.tp = 2, .pp = 2}));
  EXPECT_EQ(rollout.layers, (std::vector<std::int64_t>{3, 2}));
  EXPECT_FALSE(rollout.sp) << "that of the policy alone";
  EXPECT_EQ(reference.cp_algorithm, config::CpAlgorithm::ulysses);
}

TEST(ClusterFile, GridsOfTheRunsSectionsAreRefused) {
  config::RunConfig run = grpo(0.1);
  run.reference_parallel.pp = 2;
  const auto refused = parse_groups(
      "groups: [{role: policy}, {role: rollout}, {role: verifier}, {role: reference}]", "c", run);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what,
              HasSubstr("parallel.reference: with a cluster file the group of the role has the "
                        "keys of this section: {role: reference, parallel: {...}}"));
}

TEST(ClusterFile, OfflineAlgorithmsNeedFewerGroups) {
  EXPECT_TRUE(parse_groups("groups: [{role: policy, parallel: {dp: 2}}]", "c", of("sft")));
  EXPECT_TRUE(parse_groups("groups: [{role: policy}, {role: reference}]", "c", of("dpo")));
}

struct Refusal {
  const char* text;
  const char* algorithm;
  const char* said;
};

class RefusedCluster : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedCluster, ReportsLocationAndValidValues) {
  const Refusal& r = GetParam();
  const auto groups = parse_groups(
      r.text, "c.yaml", std::string(r.algorithm) == "grpo+kl" ? grpo() : of(r.algorithm));
  ASSERT_FALSE(groups) << r.text;
  EXPECT_EQ(groups.error().code, Errc::usage);
  EXPECT_THAT(groups.error().what, HasSubstr(r.said));
}

INSTANTIATE_TEST_SUITE_P(
    ClusterFile, RefusedCluster,
    testing::Values(
        Refusal{"", "sft", "c.yaml:1: expected a map with the key groups, found nothing"},
        Refusal{"[1]", "sft", "expected a map with the key groups, found a list"},
        Refusal{"group: []", "sft", "unknown key \"group\"; did you mean groups?"},
        Refusal{"groups: []", "sft", "groups: expected a list of groups"},
        Refusal{"groups: 3", "sft", "groups: expected a list of groups"},
        Refusal{"groups: [policy]", "sft",
                "expected a map for a group, such as {role: policy}; found a single value"},
        Refusal{"groups:\n- {role: policy}\n- {rol: rollout}", "sft",
                "c.yaml:3: unknown key \"rol\"; did you mean role?"},
        Refusal{"groups:\n- {count: 2}", "sft", "c.yaml:2: a group needs the key role"},
        Refusal{"groups: [{}]", "sft",
                "a group needs the key role: policy, critic, reward, reference, rollout, verifier"},
        Refusal{"groups: [{role: polcy}]", "sft", "found \"polcy\"; did you mean policy?"},
        Refusal{"groups: [{role: [policy]}]", "sft", "found a list"},
        Refusal{"groups: [{role: policy, count: two}]", "sft",
                "count: expected an integer from 1 to 1024, found \"two\""},
        Refusal{"groups: [{role: policy, count: 0}]", "sft",
                "count: expected an integer from 1 to 1024, found \"0\""},
        Refusal{"groups: [{role: policy, count: 99999999999}]", "sft", "found \"99999999999\""},
        Refusal{"groups: [{role: policy, count: 2}]", "sft",
                "a run has one policy; only rollout may appear more than once (more ranks"},
        Refusal{"groups: [{role: policy, parallel: 2}]", "sft",
                "parallel: expected a map with tp, dp and pp, found a single value"},
        Refusal{"groups: [{role: policy, parallel: {pq: 2}}]", "sft",
                "unknown key \"pq\"; did you mean pp?"},
        Refusal{"groups: [{role: policy}, {role: rollout, parallel: {vpp: 2}}, {role: verifier}]",
                "grpo", "parallel.vpp = 2 (c.yaml:1): needs a parallel.pp = 1 (default)"},
        Refusal{"groups: [{role: policy}, {role: rollout, parallel: {cp: 2}}, {role: verifier}]",
                "grpo", "generation divides no sequence over ranks; allowed: 1"},
        Refusal{"groups: [{role: policy, parallel: {tp: 64, pp: 64}}]", "sft",
                "a group has at most 1024 ranks, dp 1 x tp 64 x pp 64 are 4096"},
        Refusal{"groups: [{role: policy, parallel: {dp: 2, zero: 2}}]", "sft",
                "parallel.zero: expected 0 or 1, found \"2\"; gradients and weights are divided "
                "over ranks by parallel.tp"},
        Refusal{"groups: [{role: policy, parallel: {vpp: 2}}]", "sft",
                "parallel.vpp = 2 (c.yaml:1): needs a parallel.pp = 1 (default) of at least 2"},
        Refusal{"groups: [{role: policy, parallel: {pp: 2, vpp: 2, layers: [3, 2]}}]", "sft",
                "expected 4 numbers, one for each of the virtual stages of parallel.pp"},
        Refusal{"groups: [{role: policy, parallel: {vpp: 0}}]", "sft",
                "parallel.vpp: must be at least 1"},
        Refusal{"groups: [{role: policy, parallel: {cp: 4, cp_algorithm: rings}}]", "sft",
                "parallel.cp_algorithm: "},
        Refusal{"groups: [{role: policy, parallel: {cp: 4, cp_algorithm: hybrid}}]", "sft",
                "expects one of 2, found 0"},
        Refusal{"groups: [{role: policy}, {role: rollout, parallel: {sp: true}}, {role: verifier}]",
                "grpo", "generation divides no rows over ranks; allowed: false"},
        Refusal{"groups: [{role: policy, parallel: {tp: -1}}]", "sft",
                "parallel.tp: expected an integer from 1 to 1024, found \"-1\""},
        Refusal{"groups: [{role: policy, parallel: {tp: 64, dp: 64}}]", "sft",
                "a group has at most 1024 ranks, dp 64 x tp 64 are 4096"},
        Refusal{"groups: [{role: policy}, {role: policy}]", "sft",
                "c.yaml:1: role policy is already in c.yaml:1"},
        Refusal{"groups: [{role: policy}, {role: critic}]", "grpo",
                "role critic: grpo does not use this role; remove the group"},
        Refusal{"groups: [{role: policy}, {role: critic}]", "grpo",
                "role critic: grpo does not use this role"},
        Refusal{"groups: [{role: policy}, {role: rollout}]", "dpo",
                "role rollout: dpo does not use this role"},
        Refusal{"groups: [{role: policy}]", "dpo",
                "c.yaml: dpo needs a group with role reference; add {role: reference}"},
        Refusal{"groups: [{role: policy}, {role: verifier}]", "grpo",
                "grpo needs a group with role rollout"},
        Refusal{"groups: [{role: policy}, {role: rollout}]", "grpo",
                "grpo needs a group with role verifier"},
        Refusal{"groups: [{role: policy}, {role: rollout}, {role: verifier}]", "grpo+kl",
                "grpo needs a group with role reference"},
        Refusal{"groups: [{role: rollout}, {role: verifier}]", "grpo",
                "grpo needs a group with role policy"},
        Refusal{"groups: [{role: policy}, {role: rollout}, {role: verifier, parallel: {tp: 2}}]",
                "grpo", "it has no model to shard"}));

TEST(ClusterFile, AnUnusedReferenceIsNotStarted) {
  const char* text =
      "groups: [{role: policy}, {role: reference}, {role: rollout}, {role: verifier}]";
  EXPECT_EQ(value_or_throw(parse_groups(text, "c", grpo(0.1))).size(), 4u);
  const auto groups = value_or_throw(parse_groups(text, "c", grpo(0)));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].role, recipes::Role::rollout);
}

TEST(ClusterFile, ReportsAllProblemsAtOnce) {
  const auto groups =
      parse_groups("groups:\n- {role: polcy}\n- {role: rollout, cout: 2}\n", "c", grpo());
  ASSERT_FALSE(groups);
  EXPECT_THAT(groups.error().what, HasSubstr("the cluster file has 2 problems:"));
}

TEST(Launch, RejectsInvalidCommands) {
  const std::string file = testing::TempDir() + "cluster.yaml";
  value_or_throw(write_file_durably(file, "groups: [{role: policy, parallel: {tp: 2}}]"));
  const std::string launched = cat("launch --cluster '", file, "' -- ");
  const ProgramOutput other = run_program(launched + "generate --model x");
  EXPECT_EQ(other.code, run::exit_usage);
  EXPECT_THAT(other.err, HasSubstr("launch: can only start train or explain; found \"generate\""));
  const std::string sft =
      cat("train --algorithm sft --set model='", data("models/digit-completion"),
          "' --set data.path='", file, "' --set output='", testing::TempDir(), "/never' ");
  const ProgramOutput contradicts = run_program(cat(launched, sft, "--set parallel.tp=4"));
  EXPECT_EQ(contradicts.code, run::exit_usage);
  EXPECT_THAT(contradicts.err,
              HasSubstr("parallel.tp 4, parallel.dp 1, parallel.pp 1 (--set) and "));
  EXPECT_THAT(contradicts.err, HasSubstr("(policy: dp 1 x tp 2) contradict each other"));
  value_or_throw(write_file_durably(file, "groups: [{role: policy, parallel: {dp: 2, zero: 1}}]"));
  const ProgramOutput twice = run_program(cat(launched, sft, "--set parallel.zero=0"));
  EXPECT_EQ(twice.code, run::exit_usage);
  EXPECT_THAT(twice.err, HasSubstr("parallel.zero = 0 (--set) and "));
  EXPECT_THAT(twice.err, HasSubstr("(policy: 1) contradict each other; set it in one of them"));
  const ProgramOutput unrecorded = run_program(cat(launched, sft, "--set ledger=off"));
  EXPECT_EQ(unrecorded.code, run::exit_usage);
  EXPECT_THAT(unrecorded.err, HasSubstr("ledger: expected on in a run of several processes"));
  const ProgramOutput none = run_program(cat("launch --cluster nowhere.yaml -- ", sft));
  EXPECT_EQ(none.code, run::exit_code(Errc::not_found));
  EXPECT_THAT(none.err, HasSubstr("--cluster: nowhere.yaml"));
  EXPECT_FALSE(std::filesystem::exists(testing::TempDir() + "/never"))
      << "nothing is made before all is known to fit";
}

TEST(Worker, WithoutLaunchPrintsAnError) {
  const ProgramOutput got = run_program("worker");
  EXPECT_NE(got.code, 0);
  EXPECT_THAT(got.err, HasSubstr("`troupe worker` is started by `troupe launch`"));
}

TEST(Assignment, RoundTripsThroughALine) {
  cluster::Assignment given{recipes::Role::rollout,
                            "rollout-1",
                            "ipc:///x",
                            "S",
                            "P",
                            "Q",
                            {.dp = 2, .tp = 4, .pp = 3, .cp = 2},
                            grpo(),
                            "runs/a/checkpoint-3"};
  given.config.train.learning_rate = 0.1 + 0.2;
  given.config.rollout.sampling.stop_strings = {"\n", "Question:"};
  const auto back = cluster::assignment_of(cluster::to_line(given));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(cluster::to_line(*back), cluster::to_line(given));
  EXPECT_EQ(back->config.train.learning_rate, 0.1 + 0.2);
  EXPECT_EQ(back->grid, given.grid);
  EXPECT_EQ(cluster::to_line(given).find('\n'), cluster::to_line(given).size() - 1) << "one line";
}

TEST(Assignment, WithAMissingKeyOrAWrongTypeIsRefused) {
  EXPECT_THAT(cluster::assignment_of("{}").error().what, HasSubstr("role"));
  EXPECT_THAT(cluster::assignment_of("[").error().what, HasSubstr("the assignment from launch"));
  std::string line = cluster::to_line(
      cluster::Assignment{recipes::Role::rollout, "r", "e", "S", "P", "Q", {}, grpo(), ""});
  line.replace(line.find("\"tp\":1"), 6, "\"tp\":\"1\"");
  EXPECT_THAT(cluster::assignment_of(line).error().what, HasSubstr("tp"));
}

TEST(PrintedLine, IsParsedIntoRankLevelAndText) {
  const cluster::PrintedLine tagged =
      cluster::printed_line("[1,3]<stderr>:12:30:01 W two rows: left out");
  EXPECT_EQ(tagged.rank, 3);
  EXPECT_EQ(tagged.level, 'W');
  EXPECT_EQ(tagged.text, "two rows: left out");
  const cluster::PrintedLine plain = cluster::printed_line("terminate called after throwing");
  EXPECT_EQ(plain.rank, -1);
  EXPECT_EQ(plain.level, ' ');
  EXPECT_EQ(plain.text, "terminate called after throwing");
  EXPECT_EQ(cluster::printed_line("[x,3]<stderr>:y").rank, -1);
  EXPECT_EQ(cluster::printed_line("12:30:01").text, "12:30:01");
}

TEST(ProcessLog, SendsWarningsAndErrorsToTheTerminalWithTheNodesName) {
  cluster::ProcessLog log("rollout-0", value_or_throw(OutputFolder::open(testing::TempDir())));
  testing::internal::CaptureStderr();
  log.add(
      "12:00:00 I all is well\n12:00:01 W three rows were left out\n[1,1]<stderr>:12:00:02 E the "
      "disk is full\n");
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown, HasSubstr(" W rollout-0: three rows were left out\n"));
  EXPECT_THAT(shown, HasSubstr(" E rollout-0: rank 1: the disk is full\n"));
  EXPECT_THAT(shown, testing::Not(HasSubstr("all is well")));
}

TEST(ProcessLog, KeepsTheHangsOfAGroupUntilTheyAreOver) {
  cluster::ProcessLog log("policy", value_or_throw(OutputFolder::open(testing::TempDir())));
  log.add("[1,1]<stderr>:12:30:01 W main (thread 7) has made no progress for 20 s in 'step'\n");
  EXPECT_THAT(progress::hangs(), HasSubstr("policy: rank 1: main (thread 7) has made no progress"));
  log.add("[1,1]<stderr>:12:30:02 I main (thread 7) advances again\n");
  EXPECT_EQ(progress::hangs(), "");
}

TEST(ProcessLog, AssemblesLinesAndKeepsTheLastOutput) {
  const OutputFolder folder = value_or_throw(OutputFolder::open(testing::TempDir()));
  value_or_throw(folder.replace("child.log", ""));
  cluster::ProcessLog log("child", folder);
  log.add("12:00:00 I one\n[1,1]<stderr>:12:00:01 I tw");
  log.add("o\n\n-----\nPrimary job terminated normally\n[1,1]<stdout>:one word more");
  log.finish();
  const std::string date = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z ";
  EXPECT_THAT(value_or_throw(folder.read("child.log")),
              MatchesRegex(cat(date, "I one\n", date,
                               "I rank 1: two\n\n-----\nPrimary job terminated normally\n"
                               "rank 1: one word more\n")));
  EXPECT_EQ(log.last_output(), "one | rank 1: two | rank 1: one word more");
}

TEST(Threads, GroupsOfOneRoleShareTheCores) {
  const std::vector<cluster::NodeSpec> all{{"policy", recipes::Role::policy, {}},
                                           {"rollout-0", recipes::Role::rollout, {}},
                                           {"rollout-1", recipes::Role::rollout, {}}};
  EXPECT_EQ(cluster::ranks_together(all[0], all), 1);
  EXPECT_EQ(cluster::ranks_together(all[1], all), 2);
}

class SupervisorTest : public testing::Test {
 protected:
  ~SupervisorTest() override { std::filesystem::remove_all(folder_); }
  std::string log(const std::string& node) {
    return read_file(folder_ + "/logs/" + node + ".log").value_or("");
  }
  std::string folder_ = scratch_folder();
  std::atomic<int> reported_ = 0;
  cluster::Supervisor supervisor_{{.output = folder_, .on_exit = [this] { ++reported_; }}};
};

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/bash", "-c", script};
}

TEST_F(SupervisorTest, ProcessesExitWhenTheirInputIsClosed) {
  supervisor_.start("a", shell("read line; echo got $line; cat >/dev/null; echo bye"), "hello\n");
  supervisor_.watch();
  EXPECT_TRUE(supervisor_.shut_down(std::chrono::seconds(20)));
  EXPECT_TRUE(supervisor_.kill_all().empty());
  EXPECT_EQ(log("a"), "got hello\nbye\n");
  EXPECT_EQ(reported_, 0);
}

TEST_F(SupervisorTest, AnExitIsReportedOnceWithItsLastOutput) {
  supervisor_.start("a", shell("read line; echo first; echo I fall; kill -9 $$"), "x\n");
  supervisor_.start("b", shell("cat >/dev/null"), "x\n");
  supervisor_.start("c", shell("read line; exit 5"), "x\n");
  supervisor_.watch();
  EXPECT_TRUE(supervisor_.exit_within(std::chrono::seconds(20)));
  // The two may exit a moment apart; kill_all() returns those that have exited by then.
  const auto exits = supervisor_.kill_all();
  ASSERT_GE(exits.size(), 1u);
  const std::string text = cluster::describe(exits, folder_);
  for (const cluster::ExitedProcess& f : exits) {
    EXPECT_NE(f.node, "b") << "it was stopped by the supervisor";
    EXPECT_EQ(f.how, f.node == "a" ? "was killed by signal 9 (Killed)" : "exited with code 5");
    EXPECT_EQ(f.last_output, f.node == "a" ? "first | I fall" : "");
    EXPECT_THAT(text, HasSubstr(f.how + " at "));
  }
  EXPECT_THAT(text, HasSubstr("There is no checkpoint yet: the same command starts the run again"));
}

TEST_F(SupervisorTest, MemoryIsNamedAsAReasonOnlyWhereSignal9EndedAProcess) {
  supervisor_.start("a", shell("read line; exit 137"), "x\n");  // as mpirun for a killed rank
  supervisor_.watch();
  EXPECT_TRUE(supervisor_.exit_within(std::chrono::seconds(20)));
  EXPECT_THAT(cluster::describe(supervisor_.kill_all(), folder_),
              HasSubstr("the memory of the machine or of a control group was exhausted"));
  EXPECT_THAT(cluster::describe({{.node = "a", .pid = 1, .how = "exited with code 5"}}, folder_),
              testing::Not(HasSubstr("memory")));
}

TEST_F(SupervisorTest, AnExitIsNotReportedWhenTheRunIsComplete) {
  supervisor_.start("a", shell("read line; exit 5"), "x\n");
  supervisor_.start("b", shell("cat >/dev/null"), "x\n");
  supervisor_.expect_exits();
  supervisor_.watch();
  supervisor_.disconnected("b", "has not been heard for 5 s");
  EXPECT_TRUE(supervisor_.shut_down(std::chrono::seconds(20)));
  EXPECT_TRUE(supervisor_.kill_all().empty());
  EXPECT_EQ(reported_, 0);
}

// It was reported before the last step, which did not need it: kill_all() returns it, and nothing
// ends this process.
TEST_F(SupervisorTest, AnExitBeforeTheEndOfARunIsKeptForAWarning) {
  supervisor_.start("a", shell("read line; exit 5"), "x\n");
  supervisor_.watch();
  EXPECT_TRUE(supervisor_.exit_within(std::chrono::seconds(20)));
  supervisor_.expect_exits();
  EXPECT_TRUE(supervisor_.shut_down(std::chrono::seconds(20)));
  const auto lost = supervisor_.kill_all();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_THAT(cluster::describe_unneeded(lost), HasSubstr("The run was complete without it"));
}

TEST_F(SupervisorTest, KillsAllDescendantsEvenThoseThatIgnoreSignals) {
  supervisor_.start(
      "a",
      shell("trap '' TERM; (setsid bash -c 'trap \"\" TERM; while true; do sleep 0.05; "
            "done' & echo $!); cat >/dev/null; "
            "while true; do sleep 0.05; done"),
      "x\n");
  supervisor_.watch();
  while (log("a").find('\n') == std::string::npos) std::this_thread::yield();
  const pid_t grandchild = static_cast<pid_t>(std::stol(log("a")));
  EXPECT_TRUE(supervisor_.kill_all().empty());
  EXPECT_NE(::kill(grandchild, 0), 0);
}

TEST(Launch, EndsWithTheCodeOfATimeoutIfAGroupReportedOneFirst) {
  const cluster::ExitedProcess late{.node = "a", .timed_out = true}, dead{.node = "b"};
  EXPECT_EQ(cluster::exit_code_of({late, dead}), run::exit_code(Errc::timeout));
  EXPECT_EQ(cluster::exit_code_of({dead, late}), run::exit_process_died);
  EXPECT_EQ(cluster::exit_code_of({}), run::exit_process_died);
}

// The main thread is busy with something long, such as reading data.
TEST(SupervisorDeathTest, ExitsThisProcessIfTheMainThreadDoesNotReact) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string folder = scratch_folder();
  const auto sleepy = [&] {
    cluster::Supervisor supervisor(
        {.output = folder, .on_exit = [] {}, .kill_timeout = std::chrono::milliseconds(50)});
    supervisor.start("a", shell("read line; exit 3"), "x\n");
    supervisor.start("b", shell("trap '' TERM; cat >/dev/null; sleep 60"), "x\n");
    supervisor.watch();
    ::pause();
  };
  EXPECT_EXIT(sleepy(), testing::ExitedWithCode(run::exit_process_died),
              "troupe: a .process [0-9]+. exited with code 3 at ");
  std::filesystem::remove_all(folder);
}

TEST_F(SupervisorTest, AnUnresponsiveGroupIsKilledAndReported) {
  supervisor_.start("a", shell("read line; echo here; cat >/dev/null"), "x\n");
  supervisor_.watch();
  supervisor_.disconnected("a", "has not been heard for 5 s");
  EXPECT_TRUE(supervisor_.exit_within(std::chrono::seconds(20)));
  while (reported_ == 0) std::this_thread::yield();
  const auto exits = supervisor_.kill_all();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_THAT(cluster::describe(exits, folder_), HasSubstr("has not been heard for 5 s at "));
}

}  // namespace
}  // namespace troupe::launch::cluster_test
