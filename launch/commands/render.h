// `troupe render`: applies a chat template. `troupe tokenize`: text to token ids and back.
#pragma once

#include <string>

#include "engine/tokenizer/formats/transformers5.h"

namespace troupe::launch::commands {

struct RenderOptions {
  std::string model;          ///< a folder with a chat template
  std::string template_file;  ///< or a template file
  std::string prompt_type;    ///< or the name of a MindSpeed prompt type
};
/// Returns the exit code. Throws Failure.
int render(const RenderOptions& options);

struct TokenizeOptions {
  std::string model;     ///< a folder with tokenizer.json, or the file itself
  bool special = false;  ///< add the special tokens of the post-processor
  bool decode = false;   ///< from ids to text
  engine::tokenizer::TokenizerIds ids = engine::tokenizer::TokenizerIds::file;
};
/// Returns the exit code. Throws Failure.
int tokenize(const TokenizeOptions& options);

}  // namespace troupe::launch::commands
