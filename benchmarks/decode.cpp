// Benchmark of greedy decoding after the prompts. Every new token reads all weights: the ceiling is
// memory bandwidth.
#include "benchmarks/support/bandwidth.h"
#include "benchmarks/support/clock.h"
#include "benchmarks/support/generation.h"
#include "benchmarks/support/llama.h"
#include "benchmarks/support/program.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  Requests requests(options);
  requests.prompt();
  const Timing once = requests.generate(true);
  const double peak = peak_rss_mib();

  Bandwidth memory(options.threads, options.tiny());
  std::vector<double> whole;
  const Pairs pairs = in_pairs(
      options.rounds, [&] { return memory.read(); },
      [&] {
        const Timing timing = requests.generate(true);
        whole.push_back(static_cast<double>(timing.tokens) / timing.whole);
        return timing.steady;
      });
  std::vector<double> prompts;
  for (int i = 0; i < options.rounds; ++i)
    prompts.push_back(static_cast<double>(options.shape.sequence) / requests.prompt());

  const double rate = static_cast<double>(once.steady_tokens) / pairs.time();
  const double gigabytes = options.weights_read(),
               read = gigabytes * static_cast<double>(once.steady_passes);
  say(cat(to_text(rate, 1), " new tokens/s, ", pairs.describe(), "; with prompts of ",
          lengths_of(options).prompt, " tokens and ", lengths_of(options).fresh, " new ones ",
          to_text(pairs.middle(whole), 1)));
  say(cat("weights ", to_text(gigabytes, 3), " GB as ", options.int8 ? "int8" : options.dtype(),
          ", read at ", to_text(read / pairs.time(), 1), " GB/s of ", to_text(pairs.ceiling(), 1)));
  say(cat("a prompt of ", options.shape.sequence, " tokens: ", to_text(median(prompts), 1),
          " tokens/s"));
  say_llama(options, rate, median(prompts));
  return {rate,
          "tokens/s",
          pairs.ceiling(),
          pairs.ratio(read),
          peak,
          [options] { return ask_peer(options, cat("gen", options.batch), "tok/s"); },
          pairs.middle(whole)};
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("decode", {.batch = 1, .int8 = true}, count, words,
                                 troupe::benchmarks::measure);
}
