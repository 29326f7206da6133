// A conversion that ended early and the same one again.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/file_stamp.h"
#include "launch/convert/convert.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

class InterruptedConversion : public testing::Test {
 protected:
  InterruptedConversion() {
    fs::create_directory(hf_);
    put_small_model(hf_, small_config("LlamaForCausalLM"));
  }
  ConvertOptions to_mg(const std::string& name) const {
    ConvertOptions options;
    options.load_dir = hf_;
    options.save_dir = root_ + name;
    options.tensor = 2;
    options.use_mcore = true;
    return options;
  }
  static std::string rank(const std::string& folder, int tensor) {
    return cat(folder, "/iter_0000001/mp_rank_0", tensor, "/model_optim_rng.pt");
  }
  /// Something that cannot be replaced by the file of the second rank.
  static void block(const std::string& folder) {
    fs::create_directories(rank(folder, 1) + ".partial/x");
  }
  static FileStamp stamp(const std::string& path) { return value_or_throw(stamp_of(path)); }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

TEST_F(InterruptedConversion, KeepsItsCompleteFiles) {
  value_or_throw(convert(to_mg("/whole")));
  block(root_ + "/a");
  EXPECT_FALSE(convert(to_mg("/a")).has_value());
  const FileStamp first = stamp(rank(root_ + "/a", 0));
  EXPECT_TRUE(fs::exists(root_ + "/a/convert.progress.json"));
  fs::remove_all(rank(root_ + "/a", 1) + ".partial");
  value_or_throw(convert(to_mg("/a")));
  EXPECT_EQ(stamp(rank(root_ + "/a", 0)), first);
  for (const int tensor : {0, 1})
    EXPECT_TRUE(content(rank(root_ + "/a", tensor)) == content(rank(root_ + "/whole", tensor)));
  EXPECT_FALSE(fs::exists(root_ + "/a/convert.progress.json"));
}

TEST_F(InterruptedConversion, OfAnotherKindBeginsAnew) {
  block(root_ + "/a");
  EXPECT_FALSE(convert(to_mg("/a")).has_value());
  const FileStamp first = stamp(rank(root_ + "/a", 0));
  fs::remove_all(rank(root_ + "/a", 1) + ".partial");
  ConvertOptions other = to_mg("/a");
  other.params_dtype = "fp32";
  value_or_throw(convert(other));
  EXPECT_NE(stamp(rank(root_ + "/a", 0)), first);
  other.save_dir = root_ + "/whole";
  value_or_throw(convert(other));
  for (const int tensor : {0, 1})
    EXPECT_TRUE(content(rank(root_ + "/a", tensor)) == content(rank(root_ + "/whole", tensor)));
}

TEST_F(InterruptedConversion, KeepsNoFileOfAnotherOneThatWasInterruptedBefore) {
  value_or_throw(convert(to_mg("/a")));
  fs::remove(root_ + "/a/latest_checkpointed_iteration.txt");
  ConvertOptions other = to_mg("/a");
  other.params_dtype = "fp32";
  fs::create_directories(rank(root_ + "/a", 0) + ".partial/x");  // it ends before its first file
  EXPECT_FALSE(convert(other).has_value());
  fs::remove_all(rank(root_ + "/a", 0) + ".partial");
  value_or_throw(convert(other));
  other.save_dir = root_ + "/whole";
  value_or_throw(convert(other));
  for (const int tensor : {0, 1})
    EXPECT_TRUE(content(rank(root_ + "/a", tensor)) == content(rank(root_ + "/whole", tensor)));
}

TEST_F(InterruptedConversion, LeavesACompleteCheckpointAlone) {
  value_or_throw(convert(to_mg("/a")));
  const FileStamp first = stamp(rank(root_ + "/a", 0));
  ConvertOptions other = to_mg("/a");
  other.params_dtype = "fp32";
  EXPECT_EQ(convert(other).error().code, Errc::usage);
  EXPECT_EQ(stamp(rank(root_ + "/a", 0)), first);
  EXPECT_FALSE(fs::exists(root_ + "/a/convert.progress.json"));
}

TEST_F(InterruptedConversion, ToAHuggingFaceFolderReplacesWhatIsNotComplete) {
  value_or_throw(convert(to_mg("/mg")));
  ConvertOptions back{.load_type = "mg", .save_type = "hf"};
  back.load_dir = root_ + "/mg";
  back.save_dir = hf_;
  fs::create_directories(hf_ + "/mg2hf.partial");
  value_or_throw(write_file_durably(hf_ + "/mg2hf.partial/model.safetensors", "old"));
  value_or_throw(write_file_durably(hf_ + "/mg2hf.partial/config.json", "old"));
  value_or_throw(convert(back));
  EXPECT_TRUE(content(hf_ + "/mg2hf/model.safetensors") == content(hf_ + "/model.safetensors"));
  EXPECT_EQ(content(hf_ + "/mg2hf/config.json"), content(hf_ + "/config.json"));
  EXPECT_FALSE(fs::exists(hf_ + "/mg2hf/convert.progress.json"));
}

}  // namespace
}  // namespace troupe::launch
