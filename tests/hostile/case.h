// One hostile file: how it is created, the command that reads it, and the expected message.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/hostile/folder.h"
#include "tests/hostile/program.h"

namespace troupe::hostile {

struct Case {
  std::string name;                              ///< CamelCase: the defect
  std::function<void(const Folder&)> make;       ///< in an empty folder
  std::string command;                           ///< "@" is the folder
  int code;                                      ///< docs/operations.md
  std::string says;                              ///< part of the message; "@" is the folder
  std::string input = {};                        ///< stdin
  Surroundings surroundings = {};                ///< "@" in its disk is the folder
  std::function<std::string()> long_input = {};  ///< stdin, where it is too long for a table
};
inline void PrintTo(const Case& each, std::ostream* out) {
  *out << each.name;
}

/// A command that reads a whole model folder.
inline constexpr const char* score_ids = "logprobs --model @";

// One table per kind of file, each in its own file.
const std::vector<Case>& safetensors_cases();
const std::vector<Case>& shard_cases();
const std::vector<Case>& config_cases();
const std::vector<Case>& tokenizer_cases();
const std::vector<Case>& template_cases();
const std::vector<Case>& template_cost_cases();
const std::vector<Case>& growth_cases();
const std::vector<Case>& row_cases();
const std::vector<Case>& reader_cases();
const std::vector<Case>& piece_cases();
const std::vector<Case>& run_file_cases();
const std::vector<Case>& adapter_cases();
const std::vector<Case>& run_folder_cases();
const std::vector<Case>& place_cases();
const std::vector<Case>& token_file_cases();

}  // namespace troupe::hostile
