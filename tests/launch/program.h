// Runs the built program and captures its output.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::launch {

struct ProgramOutput {
  int code = 0;
  std::string out, err;
};

/// Passes `arguments` to the program through a shell; `input` is its stdin.
ProgramOutput run_program(const std::string& arguments, const std::string& input = "");

/// The same with another path of the program, such as a link.
ProgramOutput run_as(const std::string& program, const std::string& arguments,
                     const std::string& input = "");

/// Parses JSON lines; a line that is not JSON fails the test.
std::vector<Json> json_lines(const std::string& text);

/// A folder of tests/data.
std::string data(const std::string& path);

/// A new empty folder for this test case.
std::string scratch_folder();

}  // namespace troupe::launch
