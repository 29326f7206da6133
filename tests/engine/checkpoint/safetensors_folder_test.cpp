#include "engine/checkpoint/safetensors_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>

#include "engine/base/text/text.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(SafetensorsFolder, ShardsHoldTheRoundedValuesOfTheSingleFile) {
  const auto single = SafetensorsFolder::open(data_folder + "stories260k/hf");
  const auto shards = SafetensorsFolder::open(data_folder + "stories260k/hf-bf16-sharded");
  ASSERT_TRUE(single) << single.error().what;
  ASSERT_TRUE(shards) << shards.error().what;
  EXPECT_EQ(shards->files().size(), 3u);
  ASSERT_EQ(single->all().size(), shards->all().size());
  for (const auto& place : single->all()) {
    const auto other = shards->find(place.tensor->name);
    ASSERT_TRUE(other) << place.tensor->name;
    std::vector<float> exact(static_cast<std::size_t>(place.tensor->count())),
        rounded(exact.size());
    ASSERT_TRUE(place.file->read_f32(place.tensor->name, exact));
    ASSERT_TRUE(other->file->read_f32(place.tensor->name, rounded));
    for (std::size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(rounded[i], exact[i], std::abs(exact[i]) / 256) << place.tensor->name;
  }
}

struct Index : ::testing::Test {
  Scratch scratch;
  const std::string a = tensor("a", "F32", "[1]", "[0,4]"), b = tensor("b", "F32", "[1]", "[0,4]");
  Index() {
    put(scratch / "one.safetensors", safetensors_bytes("{" + a + "}", "1234"));
    put(scratch / "two.safetensors", safetensors_bytes("{" + b + "}", "5678"));
  }
  std::string refusal(std::string_view index) {
    put(scratch / "model.safetensors.index.json", index);
    const auto folder = SafetensorsFolder::open(scratch.path());
    return folder ? "" : folder.error().what;
  }
};

TEST_F(Index, NamesThatAreNotPlainAreRefusedBeforeAnythingIsOpened) {
  put(scratch / "x.safetensors", "");
  for (const std::string name :
       {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "..", "", ".x.safetensors",
        "x.bin", "-x.safetensors", "x\\u0000.safetensors", "a\\\\x.safetensors"})
    EXPECT_THAT(refusal(cat(R"({"weight_map":{"a":")", name, "\"}}")), HasSubstr("plain name"))
        << name;
  EXPECT_THAT(refusal(R"({"weight_map":{"a":7}})"), HasSubstr("plain name"));
  EXPECT_THAT(refusal(R"({"weight_map":[]})"), HasSubstr("weight_map"));
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})"),
              HasSubstr("occurs twice"));
}

TEST_F(Index, EveryTensorMustBeWhereTheIndexSays) {
  EXPECT_EQ(refusal(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"), "");
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"two.safetensors"}})"), HasSubstr("no tensor \"a\""));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})"),
              HasSubstr("no tensor \"c\""));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"three.safetensors"}})"),
              HasSubstr("three.safetensors"));
  put(scratch / "two.safetensors", safetensors_bytes("{" + a + "}", "5678"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"one.safetensors"}})"), ::testing::StrEq(""));
}

TEST_F(Index, AShardThatIsNotARegularFileIsRefused) {
  std::filesystem::create_directory(scratch / "folder.safetensors");
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"folder.safetensors"}})"), HasSubstr("regular file"));
  ASSERT_EQ(::mkfifo((scratch / "pipe.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"pipe.safetensors"}})"), HasSubstr("regular file"));
}

TEST_F(Index, OtherFilesOfTheFolderAreNeverOpened) {
  put(scratch / "junk.safetensors", "junk");
  put(scratch / "pytorch_model.bin", "junk");
  EXPECT_EQ(refusal(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"), "");
}

TEST(SafetensorsFolder, StatesWhatIsMissing) {
  Scratch scratch;
  EXPECT_THAT(SafetensorsFolder::open(scratch.path()).error().what,
              HasSubstr("expected model.safetensors or"));
  put(scratch / "pytorch_model.bin", "junk");
  EXPECT_THAT(SafetensorsFolder::open(scratch.path()).error().what, HasSubstr("pickle"));
  EXPECT_THAT(SafetensorsFolder::open(scratch / "none").error().what, HasSubstr("no such folder"));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
