// `troupe preprocess`: tokenizes text into the token files of Megatron.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch::tools::preprocess {

struct PreprocessOptions {
  std::vector<std::string> input;
  std::string output_prefix, tokenizer;
  std::string tokenizer_model;  ///< a file, where `tokenizer` is empty
  std::string tokenizer_type = "PretrainedFromHF", handler = "GeneralPretrainHandler";
  std::vector<std::string> json_keys{"text"};
  std::string sample_by = "line", separator = "<|endoftext|>";  ///< as data.sample_by
  bool append_eod = false;
  bool special_tokens = true;
  std::string token_type = "auto";  ///< auto, uint16 or int32
  // Packed files
  std::string prompt_type;       ///< or a template file; empty: the tokenizer folder's template
  std::string prompt_type_path;  ///< the template file of MindSpeed that has the prompt type
  std::string map_keys;          ///< JSON object
  std::vector<std::string> additional_keys;
  std::int64_t sequence_length = 0;  ///< 0: no limit
  std::string placeholder = "\u043a\u0438";
  std::vector<std::string> reward_tokens;
  // Work
  int workers = 1, subs = 1;     ///< threads: the larger number
  std::int64_t max_samples = 0;  ///< 0: all
  std::int64_t log_interval = 1000;
  std::string cache_dir;  ///< of the progress file; empty: beside the output
  std::vector<std::string> merge_group_keys;
};
/// Writes PREFIX_KEY_document.bin and .idx for each column of text, or PREFIX_packed_KEY_document
/// for each output of a handler of packed files. The bytes depend neither on the number of workers
/// nor on interruptions. Returns the exit code. Throws Failure.
int preprocess(const PreprocessOptions& options);

}  // namespace troupe::launch::tools::preprocess
