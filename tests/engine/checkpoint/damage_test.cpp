// A damaged checkpoint is never used silently: any byte, any length, any missing, foreign or
// exchanged file.
#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "tests/engine/checkpoint/run_fixture.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::HasSubstr;

struct Damage : RunTest {
  Damage() { EXPECT_TRUE(write(3)); }
  std::string at(const std::string& file) const { return out / ("checkpoint-3/" + file); }
  std::string refusal() const {
    const auto manifest = verify_checkpoint(out / "checkpoint-3");
    return manifest ? "" : manifest.error().what;
  }
};

TEST_F(Damage, EveryFlippedBitOfEveryFileIsDetected) {
  std::size_t flips = 0;
  for (const auto& file : files_below(out / "checkpoint-3")) {
    const std::string bytes = slurp(at(file));
    std::fstream patch(at(file), std::ios::binary | std::ios::in | std::ios::out);
    const auto poke = [&](std::size_t place, int byte) {
      patch.seekp(static_cast<std::streamoff>(place)).put(static_cast<char>(byte)).flush();
    };
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        poke(i, bytes[i] ^ (1 << bit));
        // The step is the one thing that the manifest alone cannot vouch for: find_latest compares
        // it with name and state.
        EXPECT_FALSE(find_latest(out.path())) << file << " byte " << i << " bit " << bit;
        ++flips;
      }
      poke(i, bytes[i]);
    }
  }
  EXPECT_EQ(refusal(), "");
  EXPECT_GT(flips, 10000u);
}

TEST_F(Damage, EveryTruncationOfEveryFileIsDetected) {
  for (const auto& file : files_below(out / "checkpoint-3")) {
    const std::string bytes = slurp(at(file));
    for (std::size_t length = bytes.size(); length-- > 0;) {
      std::filesystem::resize_file(at(file), length);
      EXPECT_NE(refusal(), "") << file << " cut to " << length;
    }
    put(at(file), bytes);
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(Damage, SaysFileExpectedAndFound) {
  std::string bytes = slurp(at("model.safetensors"));
  put(at("model.safetensors"), bytes + "x");
  EXPECT_THAT(refusal(), HasSubstr(cat("checkpoint-3/model.safetensors: expected ", bytes.size(),
                                       " bytes, found ", bytes.size() + 1)));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(at("model.safetensors"), bytes);
  EXPECT_THAT(refusal(), HasSubstr("checkpoint-3/model.safetensors: expected checksum \""));
}

TEST_F(Damage, MissingForeignAndExchangedFilesAreDetected) {
  std::filesystem::rename(at("tokenizer.json"), at("t"));
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json"));
  std::filesystem::rename(at("t"), at("tokenizer.json"));
  put(at("model.safetensors.index.json"), "{}");
  EXPECT_THAT(refusal(), HasSubstr("not listed in"));
  std::filesystem::remove(at("model.safetensors.index.json"));
  put(at("notes.txt"), "a reader's own");
  EXPECT_EQ(refusal(), "");
  std::filesystem::rename(at("model.safetensors"), at("t"));
  std::filesystem::rename(at("training/optimizer.safetensors"), at("model.safetensors"));
  std::filesystem::rename(at("t"), at("training/optimizer.safetensors"));
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors: expected"));
}

TEST_F(Damage, AManifestCannotNameFilesOutside) {
  const std::string text = slurp(at("training/manifest.json"));
  for (const std::string name : {"../latest", "/etc/passwd", "a/b/c", "..", ""}) {
    std::string evil = text;
    evil.replace(evil.find("config.json"), 11, name);
    put(at("training/manifest.json"), evil);
    EXPECT_THAT(refusal(), HasSubstr("is not a file of this folder")) << name;
  }
}

TEST_F(Damage, AManifestOfALaterVersionIsUnsupported) {
  std::string text = slurp(at("training/manifest.json"));
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  put(at("training/manifest.json"), text);
  EXPECT_THAT(refusal(), HasSubstr("expected version 1, found 2"));
}

TEST_F(Damage, TheOneBeforeIsUsedWithASentenceAboutIt) {
  ASSERT_TRUE(write(5));
  put(out / "checkpoint-5/model.safetensors", "junk");
  auto found = find_latest(out.path());
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ((*found)->step, 3);
  EXPECT_TRUE(holds((*found)->path, 3));
  ASSERT_EQ((*found)->warnings.size(), 1u);
  EXPECT_THAT((*found)->warnings[0], HasSubstr("a checkpoint is damaged: " +
                                               (out / "checkpoint-5/model.safetensors: expected")));
  EXPECT_THAT((*found)->warnings[0],
              HasSubstr("resuming from " + (out / "checkpoint-3") + " instead"));
  ASSERT_TRUE(write(5));  // the damaged one is replaced
  found = find_latest(out.path());
  EXPECT_EQ((*found)->step, 5);
  EXPECT_TRUE((*found)->warnings.empty());
}

TEST_F(Damage, WhenAllAreDamagedTheRunStops) {
  ASSERT_TRUE(write(5));
  for (const auto* file : {"checkpoint-5/model.safetensors", "checkpoint-3/config.json"})
    put(out / file, "junk");
  const auto found = find_latest(out.path());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::corrupt);
  EXPECT_THAT(found.error().what, HasSubstr("checkpoint-5/model.safetensors"));
  EXPECT_THAT(found.error().what, HasSubstr("checkpoint-3/config.json"));
}

TEST_F(Damage, AFolderUnderAnotherStepsNameIsNotTakenForIt) {
  std::filesystem::rename(out / "checkpoint-3", out / "checkpoint-9");
  EXPECT_THAT(find_latest(out.path()).error().what, HasSubstr("expected step 9, found 3"));
}

TEST_F(Damage, AFolderWithoutManifestIsNoCheckpoint) {
  std::filesystem::create_directory(out / "checkpoint-8");
  std::filesystem::remove(out / "latest");
  const auto found = find_latest(out.path());
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->step, 3);
  EXPECT_EQ((*found)->warnings.size(), 1u);
}

}  // namespace
}  // namespace troupe::engine::checkpoint
