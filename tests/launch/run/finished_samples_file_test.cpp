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

namespace troupe::launch {
namespace {

using algorithms::FinishedSample;

std::vector<FinishedSample> samples() {
  std::vector<FinishedSample> out;
  for (std::uint64_t i = 0; i < 20; ++i) {
    FinishedSample sample{.batch = static_cast<std::int64_t>(7 + i / 10)};
    auto& c = sample.completion;
    c.sample_id = (std::uint64_t{1} << 63) + i;
    for (std::uint64_t t = 0; t < i; ++t) {
      c.ids.push_back(static_cast<std::int32_t>(1000 * i + t));
      c.logp.push_back(-0.1f * static_cast<float>(t + i));
    }
    c.text = cat("answer ", i, " \xc3\xa4\n");
    c.finish_reason = actors::protocol::FinishReason::stop;
    if (i > 0) c.versions = {{5, 1}};
    if (i > 1) c.versions.push_back({6, static_cast<std::uint32_t>(i - 1)});
    c.updates = 10 + i;
    c.interruptions = 2;
    c.restarts = 1;
    out.push_back(std::move(sample));
  }
  return out;
}

class FinishedSamplesFile : public testing::Test {
 protected:
  FinishedSamplesFile()
      : folder_(std::filesystem::temp_directory_path() / cat("finished-samples-", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~FinishedSamplesFile() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

void expect_equal(const std::vector<FinishedSample>& found,
                  const std::vector<FinishedSample>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto &a = found[i].completion, &b = expected[i].completion;
    EXPECT_EQ(found[i].batch, expected[i].batch);
    EXPECT_EQ(a.sample_id, b.sample_id);
    EXPECT_EQ(a.ids, b.ids);
    EXPECT_EQ(a.logp, b.logp) << "the same bits";
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.finish_reason, b.finish_reason);
    EXPECT_EQ(a.versions, b.versions);
    EXPECT_EQ(a.updates, b.updates);
    EXPECT_EQ(a.interruptions, b.interruptions);
    EXPECT_EQ(a.restarts, b.restarts);
  }
}

TEST_F(FinishedSamplesFile, IsReadAsItWasWritten) {
  const std::string path = folder_ / "samples.safetensors";
  run::write_finished_samples(path, samples());
  expect_equal(run::read_finished_samples(path), samples());
}

TEST_F(FinishedSamplesFile, HasTheSamplingMasks) {
  const std::string path = folder_ / "samples.safetensors";
  auto masked = samples();
  for (auto& sample : masked)
    for (std::size_t t = 0; t < sample.completion.ids.size(); ++t)
      sample.completion.masks.push_back(t % 2 == 0 ? ""
                                                   : encode_id_set(sample.completion.ids, 20000));
  run::write_finished_samples(path, masked);
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
  run::write_finished_samples(path, samples());
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
    run::write_finished_samples(in / "samples.safetensors", finished);
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
  EXPECT_EQ(run::stage_kept(output, 2, {}, {}), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "versions"));
  const std::string name = run::stage_kept(output, 2, {}, samples());
  EXPECT_TRUE(std::filesystem::exists(folder_ / name / "samples.safetensors"));
  EXPECT_THAT(name, testing::StartsWith("versions/.tmp-checkpoint-2-")) << "swept when killed";
}

}  // namespace
}  // namespace troupe::launch
