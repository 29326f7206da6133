// Commands that write a model folder, killed before any file operation or stopped by a power
// failure, and the same command again: the result is that of a command that was not disturbed.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "engine/checkpoint/pickle/torch_writer.h"
#include "engine/checkpoint/safetensors.h"
#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/folders.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"
#include "tests/support/sanitized.h"
#include "tests/system/child.h"
#include "tests/system/recorded_files.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// A command and the folder that it writes, below `root_`.
struct Writing {
  std::string arguments, result;
};

/// Number of points of a test, of `all`: TROUPE_CRASH_POINTS, or `few`.
std::size_t points_of(std::size_t all, std::size_t few) {
  const char* given = std::getenv("TROUPE_CRASH_POINTS");
  const auto wanted = given ? static_cast<std::size_t>(std::atoi(given)) : few;
  return std::max<std::size_t>(1, std::min(wanted, all));
}

class KilledWriting : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test::sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
    fs::create_directories(disk_);
    fs::create_directory(hf_);
    Json config = small_config("LlamaForCausalLM");
    put_small_model(hf_, config.set("num_hidden_layers", 2));
    value_or_throw(write_file_durably(hf_ + "/tokenizer_config.json", "{}"));
    writing_ = writing_of(GetParam());
    prepare();
    ASSERT_EQ(run(), 0) << said();
    fs::copy(result(), root_ + "/whole", fs::copy_options::recursive);
  }

  Writing writing_of(const std::string& name);
  std::string result() const { return disk_ + writing_.result; }
  std::string said() const { return value_or_throw(read_file(root_ + "/log")); }
  /// The disk as it is before the command.
  void prepare() const {
    fs::remove_all(disk_);
    fs::create_directories(disk_);
    if (fs::exists(root_ + "/start"))
      fs::copy(root_ + "/start", disk_, fs::copy_options::recursive);
  }
  int run(const std::string& environment = "") const {
    return test::Child(cat("env ", environment, " '" TROUPE_PROGRAM "' ", writing_.arguments),
                       root_ + "/log")
        .wait();
  }
  std::string recorder() const {
    return cat("LD_PRELOAD=" TROUPE_FILE_RECORDER " FILE_RECORDER_ROOT=",
               fs::canonical(disk_).string(), ' ');
  }
  std::vector<test::FileOperation> record() const {
    prepare();
    fs::remove(root_ + "/record");
    EXPECT_EQ(run(cat(recorder(), "FILE_RECORDER_LOG=", root_, "/record")), 0) << said();
    return test::read_recording(root_ + "/record");
  }
  /// Names of what an unfinished command leaves.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(disk_))
      if (const std::string name = entry.path().filename().string();
          name.find(".partial") != name.npos || name.find("progress") != name.npos)
        out.push_back(name);
    return out;
  }
  bool is_complete() const {
    return fs::exists(result()) && files_of(result()) == files_of(root_ + "/whole") &&
           leftovers().empty();
  }
  /// The same command continues or starts again; nothing is left beside the result or in it. A
  /// command that was killed behind its last change is complete, and the result exists.
  void expect_recovery() const {
    const int expected = is_complete() ? 2 : 0;
    EXPECT_EQ(run(), expected) << said();
    expect_same_folder(result(), root_ + "/whole");
    EXPECT_THAT(leftovers(), testing::IsEmpty());
  }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf", disk_ = root_ + "/disk";
  Writing writing_;
};

/// pytorch_model.bin with the weights of `hf` and its config.json.
void put_pickled(const std::string& folder, const std::string& hf) {
  namespace checkpoint = engine::checkpoint;
  fs::create_directories(folder);
  fs::copy_file(hf + "/config.json", folder + "/config.json");
  const auto from = value_or_throw(checkpoint::SafetensorsFile::open(hf + "/model.safetensors"));
  checkpoint::PickleValue::Dict state{.ordered = true};
  for (const auto& tensor : from.tensors())
    state.items.emplace_back(tensor.name, checkpoint::TensorSlot{tensor.type, tensor.shape});
  auto writer = value_or_throw(
      checkpoint::TorchWriter::create(folder + "/pytorch_model.bin", std::move(state)));
  for (const auto& tensor : from.tensors()) value_or_throw(writer.write(from.bytes(tensor)));
  value_or_throw(writer.finish());
}

Writing KilledWriting::writing_of(const std::string& name) {
  if (name == "HfToMg")
    return {cat("convert --use-mcore-models --load-dir ", hf_,
                " --target-tensor-parallel-size 2 --save-dir ", disk_, "/mg"),
            "/mg"};
  if (name == "MgToHf") {
    tools::convert::ConvertOptions there;
    there.load_dir = hf_;
    there.save_dir = root_ + "/mg";
    value_or_throw(tools::convert::convert(there));
    fs::create_directory(root_ + "/start");
    fs::copy_file(hf_ + "/config.json", root_ + "/start/config.json");
    return {cat("convert --load-model-type mg --save-model-type hf --load-dir ", root_,
                "/mg --save-dir ", disk_),
            "/mg2hf"};
  }
  if (name == "Merge") {
    const std::string adapter = root_ + "/adapter";
    EXPECT_EQ(run_program(cat("train --algorithm sft --model ", data("models/stories260k/hf"),
                              " --data ", data("datasets/alpaca/identity_head.json"),
                              " --set lora.rank=2 --steps 1 --set output=", adapter))
                  .code,
              0);
    return {cat("merge --model ", data("models/stories260k/hf"), " --adapter ", adapter,
                "/latest --output ", disk_, "/merged"),
            "/merged"};
  }
  put_pickled(root_ + (name == "PickleBeside" ? "/start" : "/old"), hf_);
  if (name == "PickleBeside") return {cat("convert --from-pickle ", disk_), ""};
  return {cat("convert --from-pickle ", root_, "/old --save-dir ", disk_, "/new"), "/new"};
}

TEST_P(KilledWriting, BeforeAnyFileOperationIsContinuedByTheSameCommand) {
  const std::size_t all = record().size(), points = points_of(all, 12);
  ASSERT_GT(all, 15u);
  for (std::size_t point = 0; point < points && !HasFailure(); ++point) {
    const std::size_t kill = 1 + point * (all - 1) / std::max<std::size_t>(1, points - 1);
    SCOPED_TRACE(cat("killed before operation ", kill, " of ", all));
    prepare();
    ASSERT_EQ(run(cat(recorder(), "FILE_RECORDER_KILL=", kill)), -SIGKILL) << said();
    expect_recovery();
  }
}

TEST_P(KilledWriting, TwiceIsContinuedByTheSameCommand) {
  const std::size_t all = record().size();
  prepare();
  for (const std::size_t kill : {all * 2 / 3, all / 3})
    ASSERT_EQ(run(cat(recorder(), "FILE_RECORDER_KILL=", kill)), -SIGKILL) << said();
  expect_recovery();
}

// Names and data that were not synchronized are lost, or data that was not is zero.
TEST_P(KilledWriting, APowerFailureLeavesWhatTheSameCommandContinues) {
  if (fs::exists(root_ + "/start")) GTEST_SKIP() << "a recording begins with an empty folder";
  const auto operations = record();
  const std::size_t points = points_of(operations.size(), 6);
  test::RecordedFiles files;
  std::size_t done = 0;
  for (std::size_t point = 0; point < points && !HasFailure(); ++point) {
    const std::size_t until = (2 * point + 1) * operations.size() / (2 * points);
    for (; done < until; ++done) files.apply(operations[done]);
    for (const bool zeros : {false, true}) {
      SCOPED_TRACE(cat("after ", until, " of ", operations.size(), zeros ? ", zeros" : ", lost"));
      fs::remove_all(disk_);
      if (zeros)
        files.restore_with_zeros(disk_);
      else
        files.restore_durable(disk_);
      fs::create_directories(disk_);
      expect_recovery();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, KilledWriting,
                         testing::Values("HfToMg", "MgToHf", "Merge", "PickleBeside", "Pickle"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace troupe::launch
