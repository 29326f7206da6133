// PPO as whole runs: checkpoints of critic and policy, an interrupted warm-up, a critic from
// another model, groups of processes.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Ppo : public SystemRuns {
 protected:
  std::string ppo(const std::string& output, const std::string& more = "") const {
    return arguments(
        "ppo", output,
        cat("--set train.steps=12 --set train.save_every=4 --set train.keep_last=0 ", more));
  }
  std::string critic(const std::string& output) const { return output + "/critic"; }
  void expect_same_models(const std::string& one, const std::string& other) const {
    for (const char* file :
         {"model.safetensors", "training/optimizer.safetensors", "training/state.json"})
      EXPECT_EQ(value_or_throw(read_file(path(cat(one, "/latest/", file)))),
                value_or_throw(read_file(path(cat(other, "/latest/", file)))))
          << one << ' ' << file;
  }
  Json first_step(const std::string& output) const {
    return launch::json_lines(value_or_throw(read_file(path(output + "/metrics.jsonl")))).front();
  }
};

// A rollout step has four training steps; the first two train the critic alone. One run resumes
// during the warm-up, one after it.
TEST_F(Ppo, ResumesToTheSameBytesOfPolicyAndCriticAlsoFromWithinTheWarmUp) {
  const std::string warm = "--set critic.warmup_rounds=2 ";
  run(ppo("whole", warm));
  for (const char* from : {"checkpoint-4", "checkpoint-8"}) {
    const std::string output = cat("from-", from);
    run(ppo(output, cat(warm, "--set resume='", path(cat("whole/", from)), "'")));
    expect_same_models("whole", output);
    expect_same_models(critic("whole"), critic(output));
  }
}

TEST_F(Ppo, WithoutTheCriticOfItsStepItIsRefusedInWords) {
  run(ppo("whole"));
  std::filesystem::remove_all(path("whole/critic/checkpoint-8"));
  const launch::ProgramOutput said =
      launch::run_program(ppo("other", cat("--set resume='", path("whole/checkpoint-8"), "'")));
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr(path("whole/critic/checkpoint-8")));
  EXPECT_THAT(said.err, HasSubstr("critic"));
  EXPECT_EQ(steps_written("other"), 0u);
}

TEST_F(Ppo, ACriticMayBeginFromAnotherOne) {
  run(ppo("first"));
  EXPECT_EQ(first_step("first").find("critic/values/max")->number(), 0) << "a fresh head says 0";
  run(ppo("second", cat("--set critic.model='", path("first/critic/latest"), "'")));
  EXPECT_NE(first_step("second").find("critic/values/max")->number(), 0);
}

TEST_F(Ppo, AsGroupsOfProcessesHasTheBitsOfOneProcess) {
  run(ppo("one"));
  value_or_throw(write_file_durably(path("cluster.yaml"),
                                    "groups: [{role: policy}, {role: critic}, {role: reference}, "
                                    "{role: rollout, count: 2}, {role: verifier}]"));
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ", ppo("cluster")));
  expect_same_bytes("one", "cluster");
  expect_same_models(critic("one"), critic("cluster"));
}

}  // namespace
}  // namespace troupe::test
