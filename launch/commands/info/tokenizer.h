// Tokenizers and chat templates of `troupe info`. Each function adds sections to the report.
#pragma once

#include <cstdint>
#include <string>

#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

/// A tokenizer's folder or file. `vocabulary`: size of the model's vocabulary; 0 without a model.
void inspect_tokenizer(const std::string& path, std::int64_t vocabulary, Report& report);
/// A chat template, in a folder or as a file.
void inspect_template(const std::string& path, Report& report);

}  // namespace troupe::launch::commands
