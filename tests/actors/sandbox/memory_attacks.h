// Ways to hold memory that no process's resident size shows, and ordinary ones.
#pragma once

#include <functional>
#include <map>
#include <string>

/// Each takes as much memory as it can get, up to 1 GiB, keeps it, and returns the MiB.
const std::map<std::string, std::function<long()>>& memory_attacks();
