#include "tests/system/runs.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"

namespace troupe::test {
namespace {

using launch::data;

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] =
          value_or_throw(read_file(entry.path().string()));
  return files;
}

// Files of a checkpoint whose bytes are those of every equal run: the chain of the ledger has rows
// of each start of a run.
std::map<std::string, std::string> comparable_files(const std::string& folder) {
  auto files = files_of(folder);
  const std::string journal = "training/journal.json", manifest = "training/manifest.json";
  if (const auto found = files.find(journal); found != files.end()) {
    Json content = value_or_throw(parse_json(found->second, found->first));
    std::erase_if(content.object(), [](const auto& member) { return member.first == "ledger"; });
    found->second = content.dump();
  }
  if (const auto found = files.find(manifest); found != files.end()) {
    Json content = value_or_throw(parse_json(found->second, found->first));
    for (auto& [name, value] : content.object())
      if (name == "files")
        std::erase_if(value.array(), [&](const Json& file) {
          return get_string(file, "path", manifest).value_or("") == journal;
        });
    found->second = content.dump();
  }
  return files;
}

}  // namespace

std::string settings_of(const std::string& algorithm) {
  const std::string common =
      "--set train.batch_size=4 --set train.threads=1 --set train.log_every=0 ";
  const auto of = [&](const std::string& model, const std::string& rows, const std::string& more) {
    return cat(common, "--set model='", model, "' --set data.path='", rows, "' ", more);
  };
  if (algorithm == "sft")
    return of(data("models/stories260k/hf"), data("datasets/math/gsm8k_train_head.jsonl"),
              "--set train.max_length=192 --set train.learning_rate=1e-3 ");
  if (algorithm == "pretrain")
    return of(data("models/stories260k/hf"), data("datasets/pretrain/tinystories_train_head.txt"),
              "--set train.max_length=128 --set train.learning_rate=1e-3 ");
  if (algorithm == "dpo" || algorithm == "simpo" || algorithm == "cpo" || algorithm == "orpo" ||
      algorithm == "kto")
    return of(data("models/stories260k/hf"),
              data("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl"),
              "--set train.max_length=96 --set train.learning_rate=2e-4 ");
  if (algorithm == "orm" || algorithm == "prm")
    return of(data("models/stories260k/hf"),
              data("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl"),
              "--set train.max_length=300 --set train.learning_rate=2e-4 ");
  if (algorithm == "ppo")
    return of(data("models/digit-completion"), TROUPE_SOURCE "/launch/quickstart/train.jsonl",
              "--set train.max_length=64 --set train.learning_rate=1e-3 --set "
              "critic.learning_rate=1e-3 --set rollout.max_new_tokens=12 --set "
              "ppo.epochs=2 --set ppo.minibatches=2 --set ppo.kl_schedule=adaptive --set "
              "ppo.truncated=value --set "
              "'reward=[{rule: exact_match}, {rule: length, max: 6, weight: 0.5}]' ");
  return of(data("models/digit-completion"), TROUPE_SOURCE "/launch/quickstart/train.jsonl",
            "--set train.max_length=64 --set train.learning_rate=1e-3 --set grpo.group_size=4 "
            "--set rollout.max_new_tokens=12 --set "
            "grpo.beta=0.1 "
            "--set grpo.minibatches=2 --set 'reward=[{rule: exact_match}, {rule: length, max: 6, "
            "weight: 0.5}]' ");
}

SystemRuns::~SystemRuns() {
  if (!HasFailure()) std::filesystem::remove_all(folder_);
}

std::string SystemRuns::arguments(const std::string& algorithm, const std::string& output,
                                  const std::string& more) const {
  return cat("train --algorithm ", algorithm, ' ', settings_of(algorithm), " --set output='",
             path(output), "' ", more);
}

std::string SystemRuns::command(const std::string& arguments) const {
  return cat("'" TROUPE_PROGRAM "' ", arguments);
}

std::string SystemRuns::step_rows() const {
  value_or_throw(write_file_durably(
      path("steps.jsonl"),
      "{\"prompt\":\"One day\",\"completions\":[\"he sat\",\"he ran\"],\"labels\":[true,false]}\n"
      "{\"prompt\":\"One day\",\"completions\":[\"she ran\",\"she sat\"],"
      "\"labels\":[false,true]}\n"));
  return cat(" --set train.micro_batch_tokens=16 --set data.path='", path("steps.jsonl"), "'");
}

std::string SystemRuns::run(const std::string& arguments) const {
  const launch::ProgramOutput said = launch::run_program(arguments);
  EXPECT_EQ(said.code, 0) << said.err;
  return said.err;
}

void SystemRuns::run_under_mpirun(int ranks, const std::string& arguments) const {
  // OpenMPI does not free its memory at exit, which AddressSanitizer reports as leaks.
  const auto mpirun = cat(
      "env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n ", ranks, ' ');
  Child child(mpirun + command(arguments), log());
  ASSERT_EQ(child.wait(), 0) << "see " << log();
}

std::size_t SystemRuns::steps_written(const std::string& output) const {
  const std::string text = read_file(path(output + "/metrics.jsonl")).value_or("");
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::vector<double> SystemRuns::losses(const std::string& output) const {
  std::vector<double> all;
  for (const Json& line :
       launch::json_lines(value_or_throw(read_file(path(output + "/metrics.jsonl")))))
    if (const Json* loss = line.find("loss")) all.push_back(loss->number());  // not step 0
  return all;
}

void SystemRuns::expect_same_bytes(const std::string& one, const std::string& other) const {
  const auto a = comparable_files(path(one + "/latest/")),
             b = comparable_files(path(other + "/latest/"));
  EXPECT_TRUE((a.contains("model.safetensors") || a.contains("adapter_model.safetensors")) &&
              a.contains("training/optimizer.safetensors") && a.contains("training/state.json"));
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [file, bytes] : a)
    EXPECT_TRUE(b.contains(file) && b.at(file) == bytes) << file << " differs";
  EXPECT_EQ(std::filesystem::read_symlink(path(one + "/latest")),
            std::filesystem::read_symlink(path(other + "/latest")));
  EXPECT_EQ(value_or_throw(read_file(path(one + "/metrics.jsonl"))),
            value_or_throw(read_file(path(other + "/metrics.jsonl"))));
}

void SystemRuns::expect_same_tensors(const std::string& one, const std::string& other) const {
  std::size_t compared = 0;
  const auto b = files_of(path(other + "/latest/"));
  for (const auto& [file, bytes] : files_of(path(one + "/latest/"))) {
    if (!file.ends_with(".safetensors") || file.starts_with("training/version-")) continue;
    ++compared;
    EXPECT_TRUE(b.contains(file) && b.at(file) == bytes) << file << " differs";
  }
  EXPECT_GE(compared, 2u) << "weights and optimizer state";
  EXPECT_EQ(value_or_throw(read_file(path(one + "/metrics.jsonl"))),
            value_or_throw(read_file(path(other + "/metrics.jsonl"))));
}

}  // namespace troupe::test
