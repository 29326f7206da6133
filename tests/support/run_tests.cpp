#include "tests/support/run_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::test {
namespace {

class OwnFolder {
 public:
  OwnFolder() {
    path_ = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::exit(2);
    }
    setenv("TEST_TMPDIR", (path_ + "/").c_str(), 1);
  }
  OwnFolder(const OwnFolder&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace

int run_tests(int count, char** arguments) {
  testing::InitGoogleMock(&count, arguments);
  const OwnFolder folder;
  return RUN_ALL_TESTS();
}

}  // namespace troupe::test
