// Every kind of run in every placement: threads of one process, ranks of mpirun and groups of
// processes write the same bytes, including critic and moving reference; the losses are those of
// one rank. With and without adapters.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

struct Row {
  const char* title;
  const char* algorithm;
  std::string more;    ///< FOLDER: the test's
  std::string others;  ///< the groups beside the policy's; GRID: as the policy is shared
  int dp = 1, tp = 2;
  std::string sections = {};  ///< parallel.ROLE of threads and mpirun
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.title;
}

// A large eps makes the update a smooth function of the gradient. Otherwise rounding differences
// between two ranks become full steps where the gradient is almost zero, as in most of a new
// adapter.
const std::string lora_settings =
    "--set lora.rank=4 --set train.learning_rate=5e-3 --set train.eps=1e-5 ";
const std::string reward_models =
    "--set 'reward=[{rule: model, path: FOLDER/orm/latest, weight: 0.5}, {rule: process, path: "
    "FOLDER/prm/latest, separator: \",\"}]' ";
const std::string evaluated =
    "--set eval.path='" TROUPE_SOURCE
    "/launch/quickstart/test.jsonl' --set eval.every=2 --set eval.samples=2 "
    "--set train.keep_best=eval/reward ";
const std::string rollouts = ", {role: rollout, count: 2}, {role: verifier}",
                  critic = ", {role: critic, parallel: {GRID}}";
const std::string reward = ", {role: rollout}, {role: reward, parallel: {dp: 2}}",
                  reference = ", {role: reference}";
const std::string divided =
    ", {role: critic, parallel: {pp: 2, layers: [3, 1]}}, {role: reference, parallel: {tp: 2}}, "
    "{role: rollout, parallel: {pp: 2}}, {role: verifier}";
const std::string sections =
    "--set parallel.critic.pp=2 --set parallel.critic.layers=[3,1] --set parallel.reference.tp=2 "
    "--set parallel.rollout.pp=2";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

class Everywhere : public SystemRuns, public testing::WithParamInterface<Row> {
 protected:
  std::string run_of(const std::string& output, const std::string& grid = "") const {
    std::string settings =
        cat("--set train.steps=4 --set train.save_every=0 ", GetParam().more, " ", grid);
    if (std::string_view(GetParam().algorithm) == "prm")
      settings += cat(" --set data.path=", path("steps.jsonl"));
    return arguments(GetParam().algorithm, output, replaced(settings, "FOLDER", folder_));
  }
  void write(const std::string& name, const std::string& text) const {
    value_or_throw(write_file_durably(path(name), text));
  }

  /// Reward models of the runs, and rows with process rewards.
  void prepare() const {
    write(
        "steps.jsonl",
        "{\"prompt\":\"One day\",\"completions\":[\"he sat\",\"he ran\"],\"labels\":[true,false]}\n"
        "{\"prompt\":\"One day\",\"completions\":[\"she ran\",\"she "
        "sat\"],\"labels\":[false,true]}\n");
    if (GetParam().more.find("FOLDER") == std::string::npos) return;
    write("pairs.jsonl", "{\"prompt\":\"1,2:\",\"chosen\":\"3,4\",\"rejected\":\"1,1\"}\n");
    write("digits.jsonl",
          "{\"prompt\":\"1,2:\",\"completions\":[\"3\",\"1\"],\"labels\":[true,false]}\n");
    for (const auto& [algorithm, rows] : {std::pair("orm", "pairs.jsonl"), {"prm", "digits.jsonl"}})
      run(cat("train --algorithm ", algorithm, " --set model='",
              launch::data("models/digit-completion"), "' --set data.path=", path(rows),
              " --set output=", path(algorithm),
              " --set train.steps=3 --set train.batch_size=1 --set train.threads=1"));
  }

  // A checkpoint records the sections of a run; a cluster file has none.
  void expect_same_as_threads(const std::string& other) const {
    if (other == "cluster" && !GetParam().sections.empty())
      expect_same_tensors("threads", other);
    else
      expect_same_bytes("threads", other);
    for (const char* beside : {"critic", "reference"})
      for (const char* file :
           {"model.safetensors", "adapter_model.safetensors", "training/optimizer.safetensors"}) {
        const std::string at = cat("/", beside, "/latest/", file);
        if (!std::filesystem::exists(path("threads" + at))) continue;
        EXPECT_TRUE(value_or_throw(read_file(path("threads" + at))) ==
                    read_file(path(other + at)).value_or(""))
            << other << at;
      }
  }
};

TEST_P(Everywhere, ARunWritesTheSameBytesAndOneRanksLosses) {
  const auto& [title, algorithm, more, others, dp, tp, sections] = GetParam();
  const std::string grid = cat("tp: ", tp, ", dp: ", dp);
  const auto shared = [&](const char* output) {
    return run_of(output, cat("--set parallel.tp=", tp, " --set parallel.dp=", dp, ' ', sections));
  };
  prepare();
  run(run_of("one"));
  run(shared("threads"));
  const auto one = losses("one"), threads = losses("threads");
  ASSERT_EQ(one.size(), 4u);
  ASSERT_EQ(threads.size(), 4u);
  EXPECT_NE(one[0], one[3]) << "nothing is learned";
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(threads[i], one[i], 2e-6 * std::max(1.0, std::abs(one[i]))) << "step " << i + 1;
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  run_under_mpirun(dp * tp, shared("mpi"));
  expect_same_as_threads("mpi");
  write("cluster.yaml",
        replaced(cat("groups: [{role: policy, parallel: {GRID}}", others, "]"), "GRID", grid));
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ", run_of("cluster")));
  expect_same_as_threads("cluster");
}

INSTANTIATE_TEST_SUITE_P(
    Adapters, Everywhere,
    testing::Values(Row{"Sft", "sft", lora_settings, ""},
                    Row{"Dora", "dpo", lora_settings + "--set lora.dora=true", ""},
                    Row{"Kto", "kto", lora_settings, ""}, Row{"Simpo", "simpo", lora_settings, ""},
                    Row{"Cpo", "cpo", lora_settings, ""}, Row{"Orpo", "orpo", lora_settings, ""},
                    Row{"Orm", "orm", lora_settings, ""}, Row{"Prm", "prm", lora_settings, ""},
                    Row{"Grpo", "grpo", lora_settings, rollouts},
                    Row{"GrpoInReplicas", "grpo", lora_settings, rollouts, 2, 1},
                    Row{"Ppo", "ppo", lora_settings, critic + rollouts}),
    [](const auto& each) { return std::string(each.param.title); });

INSTANTIATE_TEST_SUITE_P(
    WholeModels, Everywhere,
    testing::Values(
        Row{"Ppo", "ppo", "", critic + reference + rollouts},
        Row{"PpoInReplicas", "ppo", "", critic + reference + rollouts, 2, 1},
        Row{"Orm", "orm", "", ""}, Row{"PrmInReplicas", "prm", "", "", 2, 1},
        Row{"Kto", "kto", "", reference, 2, 1},
        Row{"PpoOfRewardModels", "ppo", reward_models, critic + reference + reward},
        Row{"GrpoOfRewardModels", "grpo", reward_models, reference + reward, 2, 1},
        Row{"GrpoEvaluated", "grpo", evaluated, reference + rollouts},
        Row{"PpoEvaluated", "ppo", evaluated, critic + reference + rollouts, 2, 1},
        Row{"MovingReference", "dpo", "--set dpo.sync_every=2", reference},
        Row{"PpoOfDividedModels", "ppo", "", divided, 2, 1, sections},
        Row{"MovingReferenceInStages", "dpo", "--set dpo.sync_every=2",
            ", {role: reference, parallel: {pp: 2}}", 2, 1, "--set parallel.reference.pp=2"},
        Row{"MovingReferenceOfReplicas", "kto", "--set kto.sync_every=2", reference, 2, 1}),
    [](const auto& each) { return std::string(each.param.title); });

}  // namespace
}  // namespace troupe::test
