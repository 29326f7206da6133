// `troupe tokenize`: text to token ids and back.
#pragma once

#include <string>

namespace troupe::launch {

struct TokenizeOptions {
  std::string model;     ///< a folder with tokenizer.json, or the file itself
  bool special = false;  ///< add the special tokens of the post-processor
  bool decode = false;   ///< from ids to text
};
/// Returns the exit code. Throws Failure.
int tokenize(const TokenizeOptions& options);

}  // namespace troupe::launch
