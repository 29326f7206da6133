// torchrun, python and python3 in front of PATH: scripts of Megatron start troupe, everything else
// the next program of that name.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/commands/script_launcher.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using commands::Launched;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ScriptLauncher, TakesListedScriptsOnly) {
  const Launched ranks = commands::launched(
      "torchrun", {"--nproc_per_node", "4", "--nnodes=1", "--node_rank", "0", "--master_addr",
                   "localhost", "--master_port", "6001", "./pretrain_gpt.py", "--bf16"});
  EXPECT_EQ(ranks.kind, Launched::Kind::ranks);
  EXPECT_EQ(ranks.ranks, 4);
  EXPECT_THAT(ranks.words, ElementsAre("pretrain_gpt", "--bf16"));
  const Launched module = commands::launched(
      "python", {"-m", "torch.distributed.launch", "--nproc-per-node=2", "posttrain_gpt.py"});
  EXPECT_EQ(module.ranks, 2);
  EXPECT_THAT(module.words, ElementsAre("posttrain_gpt"));
  // One process reads a checkpoint of any division.
  const Launched one =
      commands::launched("torchrun", {"--nproc_per_node", "8", "inference.py", "--task", "chat"});
  EXPECT_EQ(one.kind, Launched::Kind::command);
  EXPECT_THAT(one.words, ElementsAre("inference", "--task", "chat"));
  EXPECT_THAT(commands::launched("python3", {"convert_ckpt_v2.py", "--orm"}).words,
              ElementsAre("convert", "--use-mcore-models", "--orm"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"-c", "print(1)"},
                                                {"-m", "venv", "x"},
                                                {"other.py", "x"},
                                                {"--version"},
                                                {"-m", "pretrain_gpt"}}) {
    const Launched other = commands::launched("python", words);
    EXPECT_EQ(other.kind, Launched::Kind::other);
    EXPECT_EQ(other.words, words);
  }
  EXPECT_EQ(commands::launched("torchrun", {"--nnodes", "2", "train.py"}).kind,
            Launched::Kind::other);
}

TEST(ScriptLauncher, RefusesSeveralHostsAndWrongNumbers) {
  const auto refusal = [](const std::vector<std::string>& words) -> std::string {
    try {
      commands::launched("torchrun", words);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "taken";
  };
  EXPECT_THAT(refusal({"--nnodes", "2", "pretrain_gpt.py"}), HasSubstr("several hosts"));
  EXPECT_THAT(refusal({"--nproc_per_node", "gpu", "pretrain_gpt.py"}), HasSubstr("at least 1"));
  EXPECT_EQ(refusal({"--nnodes", "1", "pretrain_gpt.py"}), "taken");
}

/// A script in a folder of its own, with the links first in PATH.
ProgramOutput run_bash(const std::string& folder, const std::string& script) {
  value_or_throw(write_file_durably(folder + "/script.sh", script));
  return run_as("/usr/bin/env",
                cat("PATH=", TROUPE_SCRIPTS, ":$PATH bash -c 'cd ", folder, " && bash script.sh'"));
}

TEST(ScriptLauncher, PassesEverythingElseToTheNextProgram) {
  const std::string root = scratch_folder();
  value_or_throw(write_file_durably(root + "/other.py", "import sys\nprint(sys.argv[1:])\n"));
  const ProgramOutput said = run_bash(root,
                                      "python3 -c 'print(6 * 7)'\n"
                                      "python3 other.py a 'b c' --nnodes 2\n"
                                      "echo 'print(8)' | python3 -\n"
                                      "python3 -c 'import sys; sys.exit(5)'\n"
                                      "echo $?\n"
                                      "python3 -m venv --without-pip env && env/bin/python -c "
                                      "'import sys; print(sys.prefix != sys.base_prefix)'\n");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "42\n['a', 'b c', '--nnodes', '2']\n8\n5\nTrue\n") << said.err;
  fs::create_directory(root + "/bin");
  value_or_throw(write_file_durably(root + "/bin/torchrun", "#!/bin/sh\necho \"other $*\"\n"));
  fs::permissions(root + "/bin/torchrun", fs::perms::owner_all);
  EXPECT_EQ(run_bash(root, "PATH=$PATH:" + root + "/bin\ntorchrun --nnodes 2 train.py x\n").out,
            "other --nnodes 2 train.py x\n");
}

TEST(ScriptLauncher, StartsACommandOfAScript) {
  const ProgramOutput said =
      run_bash(scratch_folder(),
               "A=(--nproc_per_node 1 --nnodes 1)\n"
               "torchrun ${A[@]} pretrain_gpt.py --no-such-flag \\\n  --loss-scale 1 | tee log\n"
               "python preprocess_data.py --qlora 2>&1 | cat\n");
  EXPECT_THAT(said.err, HasSubstr("--no-such-flag: no flag of this program; `troupe flags`"));
  EXPECT_THAT(said.err, HasSubstr("--loss-scale: the loss scale of --fp16 is dynamic"));
  EXPECT_THAT(said.out, HasSubstr("preprocess: --qlora: an adapter over a quantized base"));
}

// mpirun waits for a minute when a rank fails.
TEST(ScriptLauncher, FindsMistakesBeforeItStartsRanks) {
  const ProgramOutput said =
      run_bash(scratch_folder(), "torchrun --nproc_per_node 2 pretrain_gpt.py --train-samples 3\n");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("--train-samples: give --train-iters"));
  EXPECT_THAT(said.err, testing::Not(HasSubstr("mpirun")));
}

}  // namespace
}  // namespace troupe::launch
