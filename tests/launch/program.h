// Runs the built program as a person would, and keeps what it said.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace troupe::launch {

struct Said {
  int code = 0;
  std::string out, err;
};

/// `arguments` are given to a shell behind the program's path; `input` is its stdin.
Said run_program(const std::string& arguments, const std::string& input = "");

/// The lines of a JSON-lines text; a line that is not JSON is a test failure.
std::vector<Json> json_lines(const std::string& text);

/// A folder of tests/data.
std::string data(const std::string& path);

/// An empty folder of this test case's own.
std::string scratch_folder();

}  // namespace troupe::launch
