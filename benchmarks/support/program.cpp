#include "benchmarks/support/program.h"

#include <cstdio>
#include <fstream>

#include "benchmarks/support/handover.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

// Five significant digits exceed the precision of all measurements.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::stod(text);
}

void add_peer(Json& line, const Outcome& outcome) {
  const PeerAnswer peer = outcome.peer
                              ? outcome.peer()
                              : PeerAnswer{{}, "no peer: torch_lm.py does nothing like this", 0};
  say(cat("peer: ", peer.name));
  if (!peer.value) {
    line.set("peer", nullptr).set("peer_value", nullptr).set("peer_ratio", nullptr);
    return;
  }
  const double ours = outcome.comparable > 0 ? outcome.comparable : outcome.value;
  say(cat("ours over the peer's: ", to_text(ours / *peer.value, 2)));
  if (peer.peak_rss_mib > 0)
    say(cat("our peak memory over the peer's: ",
            to_text(outcome.peak_rss_mib / peer.peak_rss_mib, 2)));
  line.set("peer", peer.name)
      .set("peer_value", rounded(*peer.value))
      .set("peer_ratio", rounded(ours / *peer.value));
}

}  // namespace

double peak_rss_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kib = 0; word == "VmHWM:" && status >> kib) return kib / 1024;
  return 0;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int run(const char* name, const Takes& takes, int count, char** words,
        Outcome (*measure)(const Options&)) try {
  const auto options = read_options({words + 1, static_cast<std::size_t>(count - 1)}, takes);
  if (!options) {
    std::fprintf(stderr, "%s: %s\n", name, options.error().what.c_str());
    return 2;
  }
  const auto before = options->threads > 1 ? handover() : std::nullopt;
  const Outcome outcome = measure(*options);
  if (const auto after = before ? handover() : std::nullopt) {
    say(cat("a cache line takes ", to_text(*before, 0), " ns from core to core before the run, ",
            to_text(*after, 0),
            " after it (beyond 100: on two cache complexes, where threads share less)"));
  }
  Json line;
  line.set("name", name)
      .set("shape", options->shape.name)
      .set("dtype", options->dtype())
      .set("threads", options->threads);
  line.set("value", rounded(outcome.value))
      .set("unit", outcome.unit)
      .set("ceiling", rounded(outcome.ceiling));
  line.set("ratio", rounded(outcome.ratio));
  if (outcome.peak > 0)
    line.set("peak", rounded(outcome.peak)).set("peak_ratio", rounded(outcome.peak_ratio));
  line.set("peak_rss_mib", rounded(outcome.peak_rss_mib));
  for (const auto& [key, value] : outcome.figures) line.set(key, rounded(value));
  if (options->int8) line.set("weights", "int8");
  if (options->peer) add_peer(line, outcome);
  say(line.dump());
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s: %s\n", name, error.what()), 1;
}

}  // namespace troupe::benchmarks
