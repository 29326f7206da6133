// Processes of this machine, found by a mark in their environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::test {

struct Process {
  pid_t pid = 0, parent = 0;
  std::string command;  ///< its words, with spaces between them
};
/// Those that were started with `mark` ("NAME=value") in their environment and have not ended; not
/// this process.
std::vector<Process> processes_with(const std::string& mark);

}  // namespace troupe::test
