// A conversion that ended early and the same one again.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "engine/base/files/file_stamp.h"
#include "engine/checkpoint/manifest.h"
#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/folders.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"
#include "tests/support/sanitized.h"
#include "tests/system/child.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class InterruptedConversion : public testing::Test {
 protected:
  InterruptedConversion() {
    fs::create_directory(hf_);
    put_small_model(hf_, small_config("LlamaForCausalLM"));
  }
  tools::convert::ConvertOptions to_mg(const std::string& name) const {
    tools::convert::ConvertOptions options;
    options.load_dir = hf_;
    options.save_dir = root_ + name;
    options.tensor = 2;
    options.use_mcore = true;
    return options;
  }
  static std::string rank(const std::string& folder, int tensor) {
    return cat(folder, "/iter_0000001/mp_rank_0", tensor, "/model_optim_rng.pt");
  }
  /// A command of these options and what it says; killed before a file operation below `root_`, if
  /// `kill` is not 0.
  int run(const std::string& arguments, int kill = 0) const {
    const std::string preload =
        kill == 0 ? ""
                  : cat("LD_PRELOAD=" TROUPE_FILE_RECORDER " FILE_RECORDER_ROOT=", root_,
                        " FILE_RECORDER_KILL=", kill, ' ');
    return test::Child(cat("env ", preload, "'" TROUPE_PROGRAM "' ", arguments), root_ + ".log")
        .wait();
  }
  static FileStamp stamp(const std::string& path) { return value_or_throw(stamp_of(path)); }

  std::string arguments_of_mg() const {
    return cat("convert --use-mcore-models --load-model-type hf --save-model-type mg --load-dir ",
               hf_, " --target-tensor-parallel-size 2 --save-dir ");
  }
  std::string killed(const std::string& name) const;

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

/// The conversion of `to_mg` was killed, when the file of the first rank had its name.
std::string InterruptedConversion::killed(const std::string& name) const {
  const std::string folder = root_ + name, partial = folder + ".partial";
  for (int kill = 1;; ++kill) {
    fs::remove_all(partial);
    if (run(cat(arguments_of_mg(), folder), kill) != -SIGKILL) return "";
    if (fs::exists(rank(partial, 0))) return partial;
  }
}

TEST_F(InterruptedConversion, KeepsItsCompleteFiles) {
  if (test::sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  value_or_throw(tools::convert::convert(to_mg("/whole")));
  const FileStamp first = stamp(rank(killed("/a"), 0));
  EXPECT_TRUE(fs::exists(root_ + "/a.partial/troupe.progress.json"));
  value_or_throw(tools::convert::convert(to_mg("/a")));
  EXPECT_EQ(stamp(rank(root_ + "/a", 0)), first);
  expect_same_folder(root_ + "/a", root_ + "/whole");
}

TEST_F(InterruptedConversion, OfAnotherKindBeginsAnew) {
  if (test::sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  const FileStamp first = stamp(rank(killed("/a"), 0));
  tools::convert::ConvertOptions other = to_mg("/a");
  other.params_dtype = "fp32";
  value_or_throw(tools::convert::convert(other));
  EXPECT_NE(stamp(rank(root_ + "/a", 0)), first);
  other.save_dir = root_ + "/whole";
  value_or_throw(tools::convert::convert(other));
  expect_same_folder(root_ + "/a", root_ + "/whole");
}

TEST_F(InterruptedConversion, WritesADamagedFileAgain) {
  if (test::sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  value_or_throw(tools::convert::convert(to_mg("/whole")));
  const std::string partial = killed("/a");
  flip_a_bit(rank(partial, 0));
  value_or_throw(tools::convert::convert(to_mg("/a")));
  expect_same_folder(root_ + "/a", root_ + "/whole");
}

TEST_F(InterruptedConversion, LeavesACompleteCheckpointAlone) {
  value_or_throw(tools::convert::convert(to_mg("/a")));
  const FileStamp first = stamp(rank(root_ + "/a", 0));
  tools::convert::ConvertOptions other = to_mg("/a");
  other.params_dtype = "fp32";
  EXPECT_EQ(tools::convert::convert(other).error().code, Errc::usage);
  EXPECT_EQ(stamp(rank(root_ + "/a", 0)), first);
  EXPECT_FALSE(fs::exists(root_ + "/a.partial"));
}

TEST_F(InterruptedConversion, OfADamagedCheckpointIsRefused) {
  fs::create_directory(hf_ + "/training");
  const auto manifest = value_or_throw(engine::checkpoint::measure_checkpoint(hf_, 1));
  value_or_throw(write_file_durably(cat(hf_, '/', engine::checkpoint::manifest_file),
                                    engine::checkpoint::to_text(manifest)));
  flip_a_bit(hf_ + "/model.safetensors");
  const auto there = tools::convert::convert(to_mg("/a"));
  ASSERT_FALSE(there.has_value());
  EXPECT_EQ(there.error().code, Errc::corrupt);
  EXPECT_THAT(there.error().what, HasSubstr(hf_ + "/model.safetensors: expected checksum"));
  EXPECT_FALSE(fs::exists(root_ + "/a"));
}

}  // namespace
}  // namespace troupe::launch
