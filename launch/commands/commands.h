// The commands of the program, after their options were read. Each returns the process's exit code
// or throws Failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "launch/config/resolve.h"

namespace troupe::launch {

struct TokenizeOptions {
  std::string model;     ///< a folder with tokenizer.json, or the file itself
  bool special = false;  ///< add what the post-processor adds
  bool decode = false;   ///< from ids to text
};
int tokenize(const TokenizeOptions& options);

struct RenderOptions {
  std::string model;          ///< a folder with a chat template, or
  std::string template_file;  ///< the template itself
  std::string prompt_type;    ///< by name, in the place of the folder's
};
int render(const RenderOptions& options);

/// How a tool loads and computes.
struct ModelOptions {
  std::string model;
  std::string adapter;  ///< over the model; may be empty
  std::string dtype = "f32";
  int threads = 0;
};
int logprobs(const ModelOptions& options);

struct GenerateOptions {
  ModelOptions model;
  std::string prompt;  ///< for a person: streamed; absent: JSON lines
  bool has_prompt = false;
  Json settings = Json::Object{};  ///< of sampling, by transformers' names; over the model's
                                   ///< generation_config.json
  std::string generation_config;   ///< a file in its place; "none": neither
  std::string system;              ///< chat: the first message
  std::string weights = "full";    ///< full, int8
};
int generate(const GenerateOptions& options);
int chat(const GenerateOptions& options);

struct ScoreOptions {
  ModelOptions model;
  std::vector<std::string> data;  ///< files of pairs
  std::int64_t max_length = 0;    ///< pairs with a longer sequence are left out; 0: the model's
  int bins = 10;                  ///< of the confidence
};
int score(const ScoreOptions& options);

struct ExplainOptions {
  Sources sources;
  bool reference = false;  ///< print the page of all keys instead
};
int explain(const ExplainOptions& options);

struct MergeOptions {
  std::string model, adapter, output;
  std::string dtype = "f32";  ///< of the stored weights: f32, bf16, f16
};
/// Adds an adapter into its model's weights, and saves an ordinary model folder.
int merge(const MergeOptions& options);

struct InfoOptions {
  std::string path;
  std::vector<std::string>
      column_names;   ///< of csv and tsv files without a header: data.column_names
  bool json = false;  ///< one object for machines
};
int info(const InfoOptions& options);

}  // namespace troupe::launch
