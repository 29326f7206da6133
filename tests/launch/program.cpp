#include "tests/launch/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch {

std::string scratch_folder() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      cat(testing::TempDir(), "launch_", test->test_suite_name(), "_", test->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

ProgramOutput run_program(const std::string& arguments, const std::string& input) {
  return run_as(TROUPE_PROGRAM, arguments, input);
}

ProgramOutput run_as(const std::string& program, const std::string& arguments,
                     const std::string& input) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      cat(testing::TempDir(), "launch_", test->test_suite_name(), "_", test->name(), ".io");
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(write_file_durably(folder + "/in", input));
  const int status = std::system(
      cat("'", program, "' ", arguments, " <", folder, "/in >", folder, "/out 2>", folder, "/err")
          .c_str());
  ProgramOutput said;
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  said.out = read_file(folder + "/out").value_or("");
  said.err = read_file(folder + "/err").value_or("");
  std::filesystem::remove_all(folder);
  return said;
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    auto line = parse_json(text.substr(begin, end - begin), "output");
    EXPECT_TRUE(line) << text.substr(begin, end - begin);
    lines.push_back(line.value_or(Json()));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return lines;
}

std::string data(const std::string& path) {
  return cat(TROUPE_TEST_DATA "/", path);
}

}  // namespace troupe::launch
