// A folder of their own for the tests of the data library.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/engine/data/byte_encoder.h"

namespace troupe::engine::data {

class Scratch {
 public:
  Scratch() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("troupe_" + std::string(test->test_suite_name()) + test->name() +
               std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

inline std::string data_file(const std::string& name) {
  return std::string(TROUPE_TEST_DATA) + "/" + name;
}

}  // namespace troupe::engine::data
