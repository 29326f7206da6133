// The folders that --load and --tokenizer-name-or-path name.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

bool is_there(const std::string& path);
bool same_folder(const std::string& a, const std::string& b);

struct LoadFolder {
  std::string folder;     ///< with config.json, or of the checkpoint
  bool megatron = false;  ///< a checkpoint of Megatron, which must be converted
};

/// --tokenizer-name-or-path, or the folder of the file --tokenizer-model; "" without both.
std::string tokenizer_folder(const CommandLine& line);

/// The output of a run, whose last checkpoint it is, a checkpoint of Megatron, or a Hugging Face
/// folder. Errc::not_found.
Result<LoadFolder> find_load(const std::string& load);

/// Two folders must have the same tokenizer; `tokenizer` may be empty. Errc::usage, not_found.
Result<> check_tokenizers(const std::string& model, const std::string& tokenizer);

/// Waits for a folder that rank 0 converts. Errc::timeout.
Result<> wait_for_rank_0(const std::string& path);

}  // namespace troupe::launch::tools::megatron
