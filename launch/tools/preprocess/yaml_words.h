// The YAML form of `troupe preprocess`: its keys are the names of the options.
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::tools::preprocess {

/// The options of the file as words of a command line: output_prefix: a/b becomes --output-prefix
/// a/b; true a flag; false and null nothing; a map a JSON object. Errors of read_file; Errc::usage
/// with the line for anything else.
Result<std::vector<std::string>> preprocess_words(const std::string& path);

}  // namespace troupe::launch::tools::preprocess
