// Processes of this machine with a mark in their environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::test {

struct Process {
  pid_t pid = 0, parent = 0;
  std::string command;  ///< arguments, separated by spaces
};
/// Running processes with `mark` ("NAME=value") in their environment, without this process.
std::vector<Process> processes_with(const std::string& mark);

}  // namespace troupe::test
