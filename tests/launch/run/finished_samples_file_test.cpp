// Finished samples beside a checkpoint are read as they were written, and damage is found.
#include "launch/run/finished_samples_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/run/version_store.h"

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
  write_finished_samples(path, samples());
  expect_equal(read_finished_samples(path), samples());
}

TEST_F(FinishedSamplesFile, ThatIsDamagedIsRefused) {
  const std::string path = folder_ / "samples.safetensors";
  write_finished_samples(path, samples());
  std::string bytes = value_or_throw(read_file(path));
  bytes.replace(bytes.rfind("answer"), 1, 1, '\xff');  // no UTF-8 any more
  value_or_throw(write_file_durably(path, bytes));
  try {
    read_finished_samples(path);
    FAIL() << "the text is damaged";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::corrupt);
    EXPECT_THAT(failure.error().what, testing::HasSubstr(path));
  }
  std::filesystem::remove(path);
  EXPECT_THROW(read_finished_samples(path), Failure);
}

TEST_F(FinishedSamplesFile, BelongsToTheCheckpointOfItsStep) {
  VersionStore store(value_or_throw(OutputFolder::open(folder_)));
  std::filesystem::create_directories(folder_ / "checkpoint-2");
  store.save(2, {});
  store.save_samples(2, samples());
  expect_equal(store.load_samples(2), samples());
  store.save(2, {});  // of another run that reached the same step
  EXPECT_THROW(store.load_samples(2), Failure);
}

}  // namespace
}  // namespace troupe::launch
