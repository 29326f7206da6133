// main() of every test program: testing::TempDir() is a folder of its own, which is removed when
// the program ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

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

int main(int count, char** arguments) {
  testing::InitGoogleMock(&count, arguments);
  const OwnFolder folder;
  return RUN_ALL_TESTS();
}
