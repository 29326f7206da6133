#include "launch/commands/sampling_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace troupe::launch {

namespace {

/// An option that is a setting of sampling (engine/generate/sampling_params_json.h).
template <class Value>
CLI::Option* add_setting(CLI::App& command, const char* option, const char* key,
                         GenerateOptions& options, const char* help) {
  return command.add_option_function<Value>(
      option, [key, &options](const Value& given) { options.settings.set(key, Json(given)); },
      help);
}

/// One that may be given several times.
template <class Value>
void add_list(CLI::App& command, const char* option, const char* key, GenerateOptions& options,
              const char* help) {
  const auto take = [key, &options](const std::vector<Value>& given) {
    options.settings.set(key, Json::Array(given.begin(), given.end()));
  };
  command.add_option_function<std::vector<Value>>(option, take, help)->allow_extra_args(false);
}

void add_drawing(CLI::App& command, GenerateOptions& o) {
  command.add_flag_callback(
      "--greedy", [&o] { o.settings.set("do_sample", false); },
      "take the most likely token, whatever generation_config.json says");
  add_setting<double>(
      command, "--temperature", "temperature", o,
      "draw instead of taking the most likely token; 1 is the model's own distribution");
  add_setting<std::int64_t>(command, "--top-k", "top_k", o, "draw among the k most likely; 0: all");
  add_setting<double>(command, "--top-p", "top_p", o,
                      "draw among the most likely up to this probability");
  add_setting<double>(command, "--min-p", "min_p", o,
                      "draw among tokens at least this likely relative to the best");
  add_setting<double>(command, "--typical-p", "typical_p", o,
                      "draw among the most typical up to this probability");
  add_setting<double>(command, "--epsilon-cutoff", "epsilon_cutoff", o,
                      "draw among tokens of at least this probability");
  add_setting<double>(command, "--eta-cutoff", "eta_cutoff", o,
                      "the same, less strict where the model is unsure");
  add_setting<std::int64_t>(command, "--seed", "seed", o, "of the draws");
}

}  // namespace

void add_sampling(CLI::App& command, GenerateOptions& o) {
  command.add_option("--generation-config", o.generation_config,
                     "file of settings in the place of the model's generation_config.json, or "
                     "none; options win over it");
  command
      .add_option("--weights", o.weights,
                  "full, or int8: read from a copy in 8 bits, for less time; log-probabilities are "
                  "then its own")
      ->check(CLI::IsMember({"full", "int8"}))
      ->capture_default_str();
  add_drawing(command, o);
  add_setting<std::int64_t>(command, "--num-beams", "num_beams", o,
                            "beam search with so many beams; 1: none");
  add_setting<double>(command, "--length-penalty", "length_penalty", o,
                      "of beams: above 0 favours long outputs");
  const auto stopping = [&o](const std::string& word) {
    o.settings.set("early_stopping", word == "never" ? Json(word) : Json(word == "true"));
  };
  command
      .add_option_function<std::string>("--early-stopping", stopping,
                                        "of beams: true, false or never")
      ->check(CLI::IsMember({"true", "false", "never"}));
  add_setting<double>(command, "--repetition-penalty", "repetition_penalty", o,
                      "above 1: logits of tokens already in the text shrink");
  add_setting<double>(command, "--presence-penalty", "presence_penalty", o,
                      "taken from the logits of tokens already generated");
  add_setting<double>(command, "--frequency-penalty", "frequency_penalty", o,
                      "the same, for each time that they were generated");
  add_setting<std::int64_t>(command, "--no-repeat-ngram-size", "no_repeat_ngram_size", o,
                            "so many tokens never come twice in that order");
  add_setting<std::int64_t>(
      command, "--max-new-tokens,--max-tokens", "max_new_tokens", o,
      "tokens to generate at most; 256 where neither this nor generation_config.json says");
  add_setting<std::int64_t>(command, "--min-new-tokens", "min_new_tokens", o,
                            "end tokens are banned until then");
  add_list<std::string>(command, "--stop", "stop", o,
                        "text that ends the output; may be given several times");
  add_list<std::int64_t>(command, "--stop-token", "stop_token_ids", o,
                         "token id that ends the output; may be given several times");
  add_setting<std::int64_t>(command, "--top-logprobs", "top_logprobs", o,
                            "report so many alternatives with each token");
}

}  // namespace troupe::launch
