// Files that somebody else put where a result is written, and hostile files that are converted.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "engine/checkpoint/megatron/megatron_optimizer.h"
#include "engine/checkpoint/pickle/torch_file.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/convert/from_pickle.h"
#include "tests/engine/checkpoint/pickle/pickles.h"
#include "tests/launch/convert/folders.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::checkpoint::pickled;
using engine::checkpoint::pickled_storage;
using engine::checkpoint::put_torch_file;
using engine::checkpoint::raw;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Planted : public testing::Test {
 protected:
  Planted() {
    fs::create_directory(hf_);
    put_small_model(hf_, small_config("LlamaForCausalLM"));
    value_or_throw(write_file_durably(root_ + "/elsewhere", "elsewhere"));
  }
  Result<std::string> convert_to(const std::string& folder) const {
    tools::convert::ConvertOptions options;
    options.load_dir = hf_;
    options.save_dir = folder;
    return tools::convert::convert(options);
  }
  /// Things that somebody else puts into a folder, each with its name.
  std::vector<std::pair<std::string, std::function<void(const std::string& folder)>>> things()
      const {
    const auto file = [](const char* name, const char* content) {
      return std::pair(std::string(name), std::function([=](const std::string& folder) {
                         value_or_throw(write_file_durably(folder + "/" + name, content));
                       }));
    };
    const auto link = [](const char* name, const std::string& target) {
      return std::pair(std::string(name), std::function([=](const std::string& folder) {
                         fs::create_symlink(target, folder + "/" + name);
                       }));
    };
    return {file("config.json", "{}"),
            file("tokenizer.json", "{}"),
            file("other", ""),
            file("troupe.progress.json", "{}"),
            file("troupe.progress.json",
                 R"({"format":"troupe unfinished result","job":{},"files":[{"path":"../x"}]})"),
            link("troupe.progress.json", root_ + "/elsewhere"),
            link("config.json", root_ + "/elsewhere"),
            link("iter_0000001", root_),
            link("dangling", root_ + "/nothing")};
  }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

TEST_F(Planted, FilesInTheFolderOfTheResultAreRefusedByName) {
  int number = 0;
  for (const char* ending : {"", ".partial"})
    for (const auto& [name, put] : things()) {
      const std::string target = cat(root_, "/", number++), folder = target + ending;
      SCOPED_TRACE(folder + "/" + name);
      fs::create_directory(folder);
      put(folder);
      const auto written = convert_to(target);
      ASSERT_FALSE(written.has_value());
      EXPECT_EQ(written.error().code, Errc::usage);
      EXPECT_THAT(written.error().what, HasSubstr(folder + "/" + name));
      EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
      EXPECT_EQ(content(root_ + "/elsewhere"), "elsewhere");
    }
}

TEST_F(Planted, AnEmptyFolderAndALinkToOneBecomeTheResult) {
  fs::create_directory(root_ + "/empty");
  value_or_throw(convert_to(root_ + "/empty/"));
  EXPECT_TRUE(fs::exists(root_ + "/empty/config.json"));
  fs::create_directory(root_ + "/far");
  fs::create_symlink(root_ + "/far", root_ + "/near");
  value_or_throw(convert_to(root_ + "/near"));
  EXPECT_TRUE(fs::exists(root_ + "/far/config.json"));
  EXPECT_TRUE(fs::is_symlink(root_ + "/near"));
}

TEST_F(Planted, LinksInPlaceOfTheFolderAreRefusedByName) {
  fs::create_symlink(root_ + "/nothing", root_ + "/a");
  EXPECT_THAT(convert_to(root_ + "/a").error().what, HasSubstr(root_ + "/a: exists"));
  fs::create_directory(root_ + "/far");
  fs::create_symlink(root_ + "/far", root_ + "/b.partial");
  EXPECT_THAT(convert_to(root_ + "/b").error().what,
              HasSubstr(root_ + "/b.partial: is a symbolic link"));
  EXPECT_TRUE(fs::is_empty(root_ + "/far"));
}

TEST_F(Planted, EveryCommandRefusesThem) {
  const std::string model = data("models/stories260k/hf");
  fs::create_directory(root_ + "/old");
  fs::copy_file(hf_ + "/config.json", root_ + "/old/config.json");
  put_torch_file(root_ + "/old/pytorch_model.bin",
                 cat("\x80\x02}(", pickled("a"), "ctorch._utils\n_rebuild_tensor_v2\n(",
                     pickled_storage("ShortStorage", "0", 2), raw("K\x00K\x02\x85K\x01\x85tRu.")),
                 "abcd");
  for (const std::string& command : {cat("convert --load-dir ", hf_, " --save-dir "),
                                     cat("convert --from-pickle ", root_, "/old --save-dir ")}) {
    fs::remove_all(root_ + "/to");
    fs::create_directory(root_ + "/to");
    value_or_throw(write_file_durably(root_ + "/to/tokenizer_config.json", "{}"));
    const ProgramOutput said = run_program(command + root_ + "/to");
    EXPECT_EQ(said.code, 2) << command;
    EXPECT_THAT(said.err, HasSubstr(root_ + "/to/tokenizer_config.json: exists"));
  }
}

TEST_F(Planted, WeightsBesideAPickleAreNotReplaced) {
  put_torch_file(root_ + "/pytorch_model.bin", "", "");
  fs::create_symlink(root_ + "/elsewhere", root_ + "/model.safetensors");
  const auto written = tools::convert::convert_pickles({root_, ""});
  EXPECT_EQ(written.error().code, Errc::usage);
  EXPECT_THAT(written.error().what, HasSubstr(root_ + "/model.safetensors: exists"));
  EXPECT_FALSE(fs::exists(root_ + "/troupe.progress.json"));
}

/// torch._utils._rebuild_tensor_v2 of the first 100 elements of storage "0".
std::string hundred_floats() {
  return cat("ctorch._utils\n_rebuild_tensor_v2\n(", pickled_storage("FloatStorage", "0", 100),
             raw("K\x00K\x64\x85K\x01\x85tR"));
}

TEST_F(Planted, ManyViewsOfOneStorageAreRefused) {
  const auto views = [&](int count) {
    std::string pickle = "\x80\x02}(";
    for (int i = 0; i < count; ++i) pickle += pickled(cat("t", i)) + hundred_floats();
    fs::remove(root_ + "/model.safetensors");
    fs::remove(root_ + "/pytorch_model.bin");
    put_torch_file(root_ + "/pytorch_model.bin", pickle + "u.", std::string(400, 'x'));
    return tools::convert::convert_pickles({root_, ""});
  };
  EXPECT_TRUE(views(2).has_value());
  // Each view costs more bytes in the pickle than a quarter of the storage: only more elements
  // help.
  std::string pickle = raw("\x80\x02}(");
  for (int i = 0; i < 300; ++i) {
    pickle += cat(pickled(cat("t", i)), "ctorch._utils\n_rebuild_tensor_v2\n((", pickled("storage"),
                  "ctorch\nFloatStorage\n", pickled("0"), pickled("cpu"),
                  raw("J\x00\x00\x10\x00tQK\x00J\x00\x00\x10\x00\x85K\x01\x85tR"));
  }
  fs::remove(root_ + "/model.safetensors");
  fs::remove(root_ + "/pytorch_model.bin");
  put_torch_file(root_ + "/pytorch_model.bin", pickle + "u.", std::string(4u << 20, 'x'));
  const auto written = tools::convert::convert_pickles({root_, ""});
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, Errc::unsupported);
  EXPECT_THAT(written.error().what,
              testing::AllOf(HasSubstr("pytorch_model.bin: its 300 tensors have 1258291200 bytes"),
                             HasSubstr("views of the same storages")));
  EXPECT_FALSE(fs::exists(root_ + "/model.safetensors"));
}

/// A checkpoint of Megatron with one rank whose "model" is this pickled value.
std::string put_megatron(const std::string& folder, const std::string& model) {
  fs::remove_all(folder);
  fs::create_directories(folder + "/iter_0000001/mp_rank_00");
  value_or_throw(write_file_durably(folder + "/latest_checkpointed_iteration.txt", "1"));
  put_torch_file(folder + "/iter_0000001/mp_rank_00/model_optim_rng.pt",
                 cat("\x80\x02}(", pickled("model"), model, "u."), "");
  return folder;
}

TEST_F(Planted, DictsThatAreSharedOrContainThemselvesAreRefused) {
  const auto said = [&](const std::string& model) {
    tools::convert::ConvertOptions options{.load_type = "mg", .save_type = "hf"};
    options.load_dir = put_megatron(root_ + "/mg", model);
    options.save_dir = hf_;
    const auto converted = tools::convert::convert(options);
    return converted ? "converted" : converted.error().what;
  };
  std::string cycle = raw("}q\x01("), shared = raw("}(") + pickled("a") + raw("}q\x01");
  for (int i = 0; i < 30; ++i)
    cycle += pickled(std::string(250, static_cast<char>('a' + i % 26)) + cat(i)) + raw("h\x01");
  shared += pickled("b") + raw("h\x01u");
  EXPECT_THAT(said(cycle + "u"), HasSubstr("is in two places or contains itself"));
  EXPECT_THAT(said(shared), HasSubstr("the dict \"b\" is in two places or contains itself"));
  std::string deep, end;
  for (int i = 0; i < 5; ++i) {
    deep += "}(" + pickled(std::string(250, 'x'));
    end += "u";
  }
  EXPECT_THAT(said(deep + "}" + end), HasSubstr("expected at most 1000"));
}

TEST_F(Planted, SettingsOfAnOptimizerThatNameOneTextManyTimesAreLeftOut) {
  std::string pickle = cat("\x80\x02}(", pickled("optimizer"), "}", pickled("param_groups"), "]s",
                           pickled("opt_param_scheduler"), "}(", pickled("a"), "X",
                           raw("\x00\x00\x01\x00"), std::string(65536, 'x'), raw("q\x01"));
  const auto read = [&](int more) {
    std::string texts;
    for (int i = 0; i < more; ++i) texts += pickled(cat("k", i)) + raw("h\x01");
    fs::remove(root_ + "/a.pt");
    put_torch_file(root_ + "/a.pt", pickle + texts + "uu.", "");
    const auto file = value_or_throw(engine::checkpoint::TorchFile::open(root_ + "/a.pt"));
    const auto found = engine::checkpoint::read_optimizer(file, {});
    return found ? "read" : found.error().what;
  };
  EXPECT_EQ(read(2), "read");
  EXPECT_THAT(read(20), HasSubstr("the optimizer's settings have more than 1048576 bytes"));
}

}  // namespace
}  // namespace troupe::launch
