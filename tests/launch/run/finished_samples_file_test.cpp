// Finished samples beside a checkpoint are read as they were written, and damage is found.
#include "launch/run/finished_samples_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/run/kept_files.h"
#include "tests/launch/run/finished_samples.h"

namespace troupe::launch {
namespace {

using algorithms::FinishedSample;
using finished_samples::expect_equal, finished_samples::samples;

class FinishedSamplesFile : public testing::Test {
 protected:
  FinishedSamplesFile()
      : folder_(std::filesystem::temp_directory_path() / cat("finished-samples-", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~FinishedSamplesFile() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FinishedSamplesFile, IsReadAsItWasWritten) {
  const std::string path = folder_ / "samples.safetensors";
  finished_samples::write_file(path, samples());
  expect_equal(run::read_finished_samples(path), samples());
}

TEST_F(FinishedSamplesFile, HasTheSamplingMasks) {
  const std::string path = folder_ / "samples.safetensors";
  auto masked = samples();
  for (auto& sample : masked)
    for (std::size_t t = 0; t < sample.completion.ids.size(); ++t)
      sample.completion.masks.push_back(t % 2 == 0 ? ""
                                                   : encode_id_set(sample.completion.ids, 20000));
  finished_samples::write_file(path, masked);
  const auto found = run::read_finished_samples(path);
  for (std::size_t i = 0; i < masked.size(); ++i)
    EXPECT_EQ(found[i].completion.masks, masked[i].completion.masks);
}

TEST_F(FinishedSamplesFile, OfFormat1IsRead) {
  expect_equal(
      run::read_finished_samples(cat(TROUPE_TEST_DATA, "/finished_samples/format1.safetensors")),
      samples());
}

TEST_F(FinishedSamplesFile, ThatIsDamagedIsRefused) {
  const std::string path = folder_ / "samples.safetensors";
  finished_samples::write_file(path, samples());
  std::string bytes = value_or_throw(read_file(path));
  bytes.replace(bytes.rfind("answer"), 1, 1, '\xff');  // no UTF-8 any more
  value_or_throw(write_file_durably(path, bytes));
  try {
    run::read_finished_samples(path);
    FAIL() << "the text is damaged";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::corrupt);
    EXPECT_THAT(failure.error().what, testing::HasSubstr(path));
  }
  std::filesystem::remove(path);
  EXPECT_THROW(run::read_finished_samples(path), Failure);
}

class KeptFiles : public FinishedSamplesFile {
 protected:
  static run::KeptBounds bounds() {
    return {{.vocabulary = 100'000, .longest = 64, .newest = 7}, 40};
  }
  std::string checkpoint() const { return folder_ / "checkpoint-2"; }
  /// Writes the samples as part of a checkpoint of now or of version 0.1.0.
  void write(const std::vector<FinishedSample>& finished, bool now = true) const {
    const auto in = now ? folder_ / "checkpoint-2/training" : folder_ / "versions/checkpoint-2";
    std::filesystem::create_directories(folder_ / "checkpoint-2/training");
    std::filesystem::create_directories(in);
    std::filesystem::remove(in / "samples.safetensors");
    finished_samples::write_file(in / "samples.safetensors", finished);
  }
  /// What is said of samples, one of which has been changed.
  std::string refusal(const std::function<void(FinishedSample&)>& change) const {
    auto changed = samples();
    change(changed[5]);
    write(changed);
    try {
      run::read_kept_samples(checkpoint(), bounds());
      return "";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::corrupt);
      return failure.error().what;
    }
  }
};

TEST_F(KeptFiles, AreReadFromTheCheckpointOrWhereVersion010WroteThem) {
  EXPECT_TRUE(run::read_kept_samples(checkpoint(), bounds()).empty());
  write(samples(), false);
  EXPECT_FALSE(run::kept_samples(checkpoint()).has_checksum);
  expect_equal(run::read_kept_samples(checkpoint(), bounds()), samples());
  write(samples());
  EXPECT_TRUE(run::kept_samples(checkpoint()).has_checksum);
  expect_equal(run::read_kept_samples(checkpoint(), bounds()), samples());
}

TEST_F(KeptFiles, ThatNoSampleCanHaveAreNamed) {
  const auto named = [](const std::string& what) {
    return testing::AllOf(testing::HasSubstr("checkpoint-2/training/samples.safetensors: sample "),
                          testing::HasSubstr(what));
  };
  const auto of = [&](auto change) {
    return refusal([&](FinishedSample& s) { change(s.completion); });
  };
  EXPECT_EQ(of([](auto&) {}), "");
  EXPECT_THAT(of([](auto& c) { c.ids[1] = 1'073'741'836; }), named("token_ids[1]"));
  EXPECT_THAT(of([](auto& c) { c.ids[0] = -2'147'483'634; }), named("token_ids[0]"));
  EXPECT_THAT(of([](auto& c) { c.logp[2] = 0.0219f; }), named("logprobs[2]"));
  EXPECT_THAT(of([](auto& c) { c.logp.pop_back(); }), named("logprobs"));
  EXPECT_THAT(of([](auto& c) { c.versions.back().version = 8; }), named("weight_versions[1]"));
  EXPECT_THAT(of([](auto& c) { c.versions.back().version = ~0ull; }), named("weight_versions[1]"));
  EXPECT_THAT(of([](auto& c) { c.versions.back().count = 4'000'000'000; }),
              named("expected the versions of 5 tokens"));
  EXPECT_THAT(of([](auto& c) { c.reward = HUGE_VAL; }), named("reward"));
  EXPECT_THAT(of([](auto& c) { c.sampled.assign(5, 2); }), named("loss_mask[0]"));
  EXPECT_THAT(of([](auto& c) { c.updates = 41; }), named("updates"));
  EXPECT_THAT(of([](auto& c) { c.sample_id += 1; }), named("order"));
  EXPECT_THAT(refusal([](FinishedSample& s) { s.batch = -1; }), named("a batch"));
}

TEST_F(KeptFiles, AreStagedBelowTheOutput) {
  const auto output = value_or_throw(OutputFolder::open(folder_));
  EXPECT_EQ(run::stage_kept(output, 2, {}), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "versions"));
  actors::protocol::Weights weights;
  weights.version = 7;
  weights.values = std::make_shared<const std::vector<float>>(3, 0.5f);
  const std::string name =
      run::stage_kept(output, 2, {std::make_shared<const actors::protocol::Weights>(weights)});
  EXPECT_TRUE(std::filesystem::exists(folder_ / name / "version-7.safetensors"));
  EXPECT_THAT(name, testing::StartsWith("versions/.tmp-checkpoint-2-")) << "swept when killed";
}

}  // namespace
}  // namespace troupe::launch
