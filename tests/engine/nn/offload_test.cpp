// Activations in files: values, aliases, abandoned passes, and errors.
#include "engine/nn/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::nn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OffloadTo : public testing::Test {
 protected:
  const std::string directory_ = testing::TempDir() + "/offload_test";
  const std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 1});

  void SetUp() override {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  Tensor filled(Shape shape, float value) {
    Tensor x = device_->empty(shape);
    device_->fill(x, value);
    return x;
  }
  std::vector<float> values(const Tensor& x) { return ops::to_host(*device_, x); }
};

TEST_F(OffloadTo, WhatWasUnloadedIsLoadedInReverseOrder) {
  Offload offload(directory_);
  OffloadedPass pass(offload, *device_);
  Saved saved;
  for (int layer = 0; layer < 4; ++layer) {
    const std::size_t mark = saved.mark();
    const Tensor both = filled({4, 3}, static_cast<float>(layer));
    saved.push(both);
    saved.push(filled({5}, 10.0f + static_cast<float>(layer)));
    saved.push(both);
    saved.push(Tensor());
    saved.push(both.rows(1, 3));
    pass.unload(saved, mark);
    EXPECT_TRUE(fs::is_empty(directory_)) << "the file has no name";
  }
  EXPECT_EQ(saved.bytes(), 0u);
  for (int layer = 3; layer >= 0; --layer) {
    pass.load(saved);
    const auto at = static_cast<float>(layer);
    EXPECT_EQ(values(saved.pop()), std::vector<float>(6, at));
    EXPECT_FALSE(saved.pop());
    const Tensor second = saved.pop();
    EXPECT_EQ(values(second), std::vector<float>(12, at));
    EXPECT_EQ(values(saved.pop()), std::vector<float>(5, 10 + at));
    EXPECT_EQ(saved.pop().buffer(), second.buffer()) << "pushed twice, read once";
  }
  EXPECT_TRUE(saved.empty());
  EXPECT_THROW(pass.load(saved), std::logic_error);
}

TEST_F(OffloadTo, TwoLayersAreInMemoryAtATime) {
  Offload offload(directory_);
  OffloadedPass pass(offload, *device_);
  Saved saved;
  const std::size_t layer = 1 << 20, before = device_->memory().now;
  for (int i = 0; i < 6; ++i) {
    const std::size_t mark = saved.mark();
    saved.push(filled({1 << 18}, 1));
    pass.unload(saved, mark);
  }
  for (int i = 0; i < 6; ++i) {
    pass.load(saved);
    saved.pop();
  }
  EXPECT_LT(device_->memory().peak, before + 3 * layer);
}

TEST_F(OffloadTo, AnAbandonedPassEndsItsWork) {
  Offload offload(directory_);
  for (int loads = 0; loads < 3; ++loads) {
    OffloadedPass pass(offload, *device_);
    Saved saved;
    for (int i = 0; i < 3; ++i) {
      const std::size_t mark = saved.mark();
      saved.push(filled({1 << 16}, 1));
      pass.unload(saved, mark);
    }
    for (int i = 0; i < loads; ++i) pass.load(saved);
  }
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(OffloadTo, ADirectoryThatDoesNotExistIsCreatedWhenItIsUsed) {
  const std::string place = directory_ + "/some/place";
  EXPECT_TRUE(Offload::check_directory(place));
  EXPECT_FALSE(fs::exists(place));
  const Offload offload(place);
  EXPECT_TRUE(fs::is_directory(place));
}

TEST_F(OffloadTo, ADirectoryThatCannotHaveFilesIsRefused) {
  std::ofstream(directory_ + "/file") << "text";
  for (const std::string& place : {directory_ + "/file/none", directory_ + "/file"}) {
    const auto found = Offload::check_directory(place);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::not_found);
    EXPECT_THAT(found.error().what, HasSubstr("train.offload: expected a directory in which"));
    EXPECT_THAT(found.error().what, HasSubstr(place));
    EXPECT_THROW(Offload{place}, Failure);
  }
  EXPECT_TRUE(Offload::check_directory(directory_));
}

TEST_F(OffloadTo, AFileThatCannotGrowIsAnErrorOfTheNextLayer) {
  // A limit of the size of files has the effect of a full disk, with another reason.
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, old.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  {
    Offload offload(directory_);
    OffloadedPass pass(offload, *device_);
    Saved saved;
    saved.push(filled({4096}, 1));
    pass.unload(saved, 0);
    try {
      pass.unload(saved, saved.mark());
    } catch (const Failure& failure) {
      message = failure.what();
    }
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("12288 bytes of activations cannot be written in"));
  EXPECT_THAT(message,
              HasSubstr("File too large; set train.offload to a directory on a disk with"));
}

}  // namespace
}  // namespace troupe::engine::nn
