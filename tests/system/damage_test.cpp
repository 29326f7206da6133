// Damage to any file of a run's directory, drawn by seed: a resumed run has the results of an
// undamaged one or names the file, and never ends because of it while an earlier checkpoint is
// whole.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "tests/system/disturbed_runs.h"

namespace troupe::test::damage_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Method {
  const char* name;
  const char* algorithm;
  const char* settings;
  bool same_bits;  ///< a resumed run has the bits of one without a pause
};

constexpr const char* own_threads = " --set rollout.threads=1 --set train.threads=1";
const Method methods[] = {{"Sft", "sft", "", true},
                          {"Ppo", "ppo", "", true},
                          {"Pinned", "grpo", "--set async.mode=pinned --set async.eta=2", true},
                          {"Free", "grpo", "--set async.mode=free --set async.eta=3", false}};

/// Flips a bit, truncates or deletes; returns a description.
std::string damage(const std::string& file, std::uint64_t draw) {
  std::string bytes = value_or_throw(read_file(file));
  const std::uint64_t at = uniform_below(bytes.size(), 9, 2, draw);
  switch (uniform_below(4, 9, 1, draw)) {
    case 0:
      fs::remove(file);
      return "deleted";
    case 1:
      fs::resize_file(file, at);
      return cat("truncated to ", at);
    default:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << uniform_below(8, 9, 3, draw)));
      value_or_throw(write_file_durably(file, bytes));
      return cat("bit of byte ", at, " flipped");
  }
}

/// Names of the files below a folder that are not empty, in their order.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    if (each.is_regular_file() && !each.is_symlink() && each.file_size() > 0)
      out.push_back(fs::relative(each.path(), folder).string());
  std::ranges::sort(out);
  return out;
}

class DamagedFiles : public SystemRuns, public testing::WithParamInterface<Method> {
 protected:
  std::string run_of(const std::string& output) const {
    return arguments(GetParam().algorithm, output,
                     cat("--set train.schedule=constant --set train.steps=12 --set "
                         "train.save_every=2 --set train.keep_last=0 --set rollout.record=all ",
                         GetParam().settings,
                         std::string_view(GetParam().algorithm) == "sft" ? "" : own_threads));
  }
  /// The directory of a run that was killed after the checkpoint of step 8.
  void make_killed_run() const {
    run(run_of("whole"));
    fs::copy(path("whole"), path("killed"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    for (const char* folder : {"killed", "killed/critic"})
      for (const int step : {10, 12}) fs::remove_all(path(cat(folder, "/checkpoint-", step)));
    fs::remove(path("killed/latest"));
    fs::create_directory_symlink("checkpoint-8", path("killed/latest"));
  }
  std::vector<std::string> files() const { return files_below(path("killed")); }
  void expect_no_silent_damage(const std::string& file, const std::string& said) const {
    const bool named = said.find(cat("damaged/", file)) != std::string::npos;
    if (!GetParam().same_bits) {
      EXPECT_TRUE(named || !file.starts_with("checkpoint-8/")) << said;
      return;
    }
    const auto same = [&](const std::string& result) {
      return read_file(path("whole/" + result)).value_or("missing") ==
             read_file(path("damaged/" + result)).value_or("missing");
    };
    EXPECT_TRUE(same("checkpoint-12/model.safetensors")) << said;
    EXPECT_TRUE(named || (same("metrics.jsonl") && same("samples.jsonl"))) << said;
    EXPECT_TRUE(named || !file.starts_with("checkpoint-8/")) << said;
  }
  void try_damage(const std::string& file, std::uint64_t draw) const {
    fs::remove_all(path("damaged"));
    fs::copy(path("killed"), path("damaged"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const std::string what = damage(path("damaged/" + file), draw);
    SCOPED_TRACE(cat(file, ": ", what));
    const launch::ProgramOutput said = launch::run_program(run_of("damaged"));
    EXPECT_EQ(said.code, 0) << said.err;
    expect_no_silent_damage(file, said.err);
  }
};

TEST_P(DamagedFiles, AreNamedOrWithoutEffect) {
  make_killed_run();
  const auto all = files();
  const std::size_t wanted = wanted_count("TROUPE_DAMAGES", 5);
  for (std::uint64_t draw = 0; draw < wanted && !HasFailure(); ++draw)
    try_damage(all[uniform_below(all.size(), 9, 0, draw)], draw);
}

// Those that no manifest listed before.
TEST_P(DamagedFiles, OfTheNextBatchesAreNamed) {
  make_killed_run();
  std::uint64_t draw = 1000;
  std::size_t tried = 0;
  for (const auto& file : files()) {
    const std::string name = fs::path(file).filename().string();
    if (!file.starts_with("checkpoint-8/training/") ||
        !(name.starts_with("version-") || name.starts_with("samples.")))
      continue;
    ++tried;
    try_damage(file, ++draw);
  }
  if (std::string_view(GetParam().name) == "Pinned") {
    EXPECT_EQ(tried, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, DamagedFiles, testing::ValuesIn(methods),
                         [](const auto& each) { return each.param.name; });

/// A command that reads checkpoints and writes a model.
struct Reader {
  const char* name;
  const char* arguments;  ///< after the program; $ is the folder that has base/ and adapter/
};

const Reader readers[] = {
    {"Convert",
     "convert --use-mcore-models --load-model-type hf --save-model-type mg --load-dir "
     "$/base --save-dir $/written"},
    {"Merge", "merge --model $/base --adapter $/adapter --output $/written"}};

class DamagedModels : public SystemRuns, public testing::WithParamInterface<Reader> {
 protected:
  /// A checkpoint, and that of an adapter for it.
  void make_checkpoints() const {
    run(arguments("sft", "base-run", "--set train.steps=1"));
    run(arguments("sft", "adapter-run",
                  cat("--set train.steps=1 --set lora.rank=2 --set model='",
                      fs::canonical(path("base-run/latest")).string(), "'")));
    for (const std::string name : {"base", "adapter"})
      fs::copy(fs::canonical(path(name + "-run/latest")), path("whole/" + name),
               fs::copy_options::recursive);
  }
  /// Copies of both, in a folder that always has the same name.
  void copy_checkpoints() const {
    fs::remove_all(path("tried"));
    fs::create_directory(path("tried"));
    for (const std::string name : {"base", "adapter"})
      fs::copy(path("whole/" + name), path("tried/" + name), fs::copy_options::recursive);
  }
  launch::ProgramOutput read() const {
    std::string arguments = GetParam().arguments;
    for (std::size_t at = 0; (at = arguments.find('$')) != arguments.npos;)
      arguments.replace(at, 1, path("tried"));
    return launch::run_program(arguments);
  }
  std::string written() const {
    std::string bytes;
    for (const auto& file : files_below(path("tried/written")))
      bytes += cat(file, '\n', value_or_throw(read_file(path("tried/written/" + file))));
    return bytes;
  }
};

TEST_P(DamagedModels, AreNamedOrWithoutEffect) {
  fs::create_directory(path("whole"));
  make_checkpoints();
  const auto all = files_below(path("whole"));
  copy_checkpoints();
  const launch::ProgramOutput undisturbed = read();
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const std::string expected = written();
  const std::size_t wanted = wanted_count("TROUPE_DAMAGES", 8);
  for (std::uint64_t draw = 0; draw < wanted && !HasFailure(); ++draw) {
    copy_checkpoints();
    const auto& file = all[uniform_below(all.size(), 9, 0, draw)];
    SCOPED_TRACE(cat(file, ": ", damage(path("tried/" + file), draw)));
    const launch::ProgramOutput said = read();
    if (said.code == 0) {
      EXPECT_TRUE(written() == expected) << said.err;
      continue;
    }
    EXPECT_THAT(said.err, HasSubstr(fs::path(file).filename().string()));
    EXPECT_FALSE(fs::exists(path("tried/written"))) << said.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, DamagedModels, testing::ValuesIn(readers),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace troupe::test::damage_test
