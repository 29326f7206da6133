#include "benchmarks/support/llama.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/generation.h"
#include "benchmarks/support/peer.h"
#include "benchmarks/support/program.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

/// Tokens per second; 0: not printed.
struct Rates {
  double prompt = 0, fresh = 0;
};

/// One prompt of the shape's sequence length and, at batch 1, new tokens after an empty prompt.
Rates alone(const Options& options, const std::string& program, const std::string& model) {
  const std::string command =
      cat(quoted(program), " -m ", quoted(model), " -t ", options.threads, " -p ",
          options.shape.sequence, " -n ", options.batch == 1 ? lengths_of(options).fresh : 0,
          " -fa 0,1 -r ", options.rounds, " -o json 2>/dev/null");
  const auto rows = parse_json(output_of(command), "what llama-bench said");
  Rates out;
  if (!rows || !rows->is_array()) return out;
  for (const Json& row : rows->array()) {
    const auto fresh = get_integer(row, "n_gen", "llama-bench");
    const auto rate = get_number(row, "avg_ts", "llama-bench");
    if (!fresh || !rate) continue;
    double& best = *fresh > 0 ? out.fresh : out.prompt;
    best = std::max(best, *rate);
  }
  return out;
}

/// New tokens/s of --batch sequences with prompts of their own, the median of --rounds.
double together(const Options& options, const std::string& program, const std::string& model) {
  const Lengths lengths = lengths_of(options);
  std::string batches = cat(options.batch);
  for (int i = 1; i < options.rounds; ++i) batches += cat(",", options.batch);
  std::istringstream said(output_of(
      cat(quoted(program), " -m ", quoted(model), " -t ", options.threads, " -tb ", options.threads,
          " -c ", options.batch * (lengths.prompt + lengths.fresh), " -npp ", lengths.prompt,
          " -ntg ", lengths.fresh, " -npl ", batches, " --output-format jsonl 2>/dev/null")));
  std::vector<double> rates;
  for (std::string line; std::getline(said, line);) {
    if (!line.starts_with("{")) continue;
    const auto row = parse_json(line, "what llama-batched-bench said");
    if (!row) continue;
    if (const auto rate = get_number(*row, "speed_tg", "llama-batched-bench"))
      rates.push_back(*rate);
  }
  return rates.empty() ? 0 : median(rates);
}

void say_one(const std::string& what, double ours, double theirs) {
  say(theirs > 0 ? cat("llama.cpp: ", to_text(theirs, 1), " ", what, ", ours over it ",
                       to_text(ours / theirs, 2))
                 : cat("llama.cpp: no answer for ", what));
}

}  // namespace

void say_llama(const Options& options, double tokens_per_second, double prompt_per_second) {
  const char *program = std::getenv("TROUPE_LLAMA_BENCH"),
             *model = std::getenv("TROUPE_LLAMA_MODEL");
  if (!program) return;
  if (!model) return say("llama.cpp: TROUPE_LLAMA_MODEL does not name a GGUF file of this shape");
  Rates rates = alone(options, program, model);
  if (options.batch > 1)
    rates.fresh = together(
        options, (std::filesystem::path(program).parent_path() / "llama-batched-bench").string(),
        model);
  say_one("new tokens/s", tokens_per_second, rates.fresh);
  say_one("prompt tokens/s", prompt_per_second, rates.prompt);
}

}  // namespace troupe::benchmarks
