// The words of a command line as settings.
#pragma once

#include <string>
#include <vector>

#include "launch/tools/migration/input.h"
#include "launch/tools/migration/shell/fields.h"

namespace troupe::launch::tools::migration {

/// `folder`: in which files that the words name are looked for, besides the working directory.
/// Throws Failure: usage for words without a program of a known tool, unsupported for a program
/// that is none that trains, bad_input for a word that may be any number of settings.
ForeignRun read_words(const std::vector<shell::Field>& words, const std::string& where,
                      const std::string& folder);

/// A setting KEY=VALUE, as Hydra has it.
bool is_override(const std::string& word);
/// A text, or a list or map in brackets.
config::YamlNode node_of_text(std::string_view text);
/// The file `path`, there or below `folder` or one of the folders above it; "" if it is nowhere.
std::string file_near(const std::string& path, const std::string& folder);

}  // namespace troupe::launch::tools::migration
