// Benchmark of whole requests: prompts and new tokens sampled from the whole vocabulary.
#include "benchmarks/support/bandwidth.h"
#include "benchmarks/support/clock.h"
#include "benchmarks/support/generation.h"
#include "benchmarks/support/program.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  Requests requests(options);
  const Timing once = requests.generate(false);
  const double peak = peak_rss_mib();

  Bandwidth memory(options.threads, options.tiny());
  const Pairs pairs = in_pairs(
      options.rounds, [&] { return memory.read(); },
      [&] { return requests.generate(false).whole; });
  const double rate = static_cast<double>(once.tokens) / pairs.time();
  const double read = options.weights_read() * static_cast<double>(once.passes);
  say(cat(options.batch, " requests of ", lengths_of(options).prompt, " tokens, ",
          lengths_of(options).fresh, " new ones each: ", to_text(pairs.time(), 3), " s, ",
          pairs.describe(), ", ", to_text(rate, 1), " new tokens/s"));
  say(cat(once.passes, " passes read weights at ", to_text(read / pairs.time(), 1), " GB/s of ",
          to_text(pairs.ceiling(), 1)));
  return {rate, "tokens/s", pairs.ceiling(), pairs.ratio(read), peak, [options] {
            return ask_peer(options, cat("gen", options.batch), "tok/s");
          }};
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("generate", {.batch = 16, .int8 = true}, count, words,
                                 troupe::benchmarks::measure);
}
