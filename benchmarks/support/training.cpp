#include "benchmarks/support/training.h"

#include <chrono>
#include <thread>

#include "benchmarks/support/ceiling.h"
#include "engine/base/text.h"

namespace troupe::benchmarks {

engine::data::Experience random_batch(const ModelShape& shape, std::int64_t sequences, std::uint64_t seed) {
  engine::data::Experience batch;
  std::vector<float> mask(static_cast<std::size_t>(shape.sequence), 1.0f);
  mask[0] = 0;
  for (std::int64_t n = 0; n < sequences; ++n)
    batch.append(random_tokens(shape, shape.sequence, seed + static_cast<std::uint64_t>(n)), mask);
  batch.count = static_cast<double>(sequences * (shape.sequence - 1));
  return batch;
}

Work work_of(const ModelShape& shape, double tokens, int passes) {
  const double each = 1e-9 * passes * tokens;
  return {2 * each * static_cast<double>(shape.weights()), each * shape.attention(static_cast<double>(shape.sequence))};
}

Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work, const std::function<void()>& step) {
  step(), step();
  Steps out;
  out.peak_rss_mib = peak_rss_mib();
  ProductCeiling ceiling(device, options);
  const auto measured = [&] {
    const double rate = ceiling.measure();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until oneDNN's threads have ceased to spin
    return rate;
  };
  out.pairs = in_pairs(options.rounds, measured, [&] { return seconds(step); });
  const double all = work.products + work.attention, causal = work.products + work.attention / 2;
  out.ratio = out.pairs.ratio(all);
  const bool halved = work.attention > 0;
  say(cat("step ", to_text(out.pairs.time(), 4), " s, ", out.pairs.told(), "; ", to_text(all / out.pairs.time(), 1), " GFLOP/s",
          halved ? cat(", ", to_text(causal / out.pairs.time(), 1), " with attention halved for causal") : ""));
  say(cat("square product: ours at best ", to_text(ceiling.ours(), 1), " GFLOP/s, oneDNN's ",
          ceiling.theirs() > 0 ? to_text(ceiling.theirs(), 1) : std::string("not here")));
  say(cat("share of the ceiling ", to_text(out.ratio, 3),
          halved ? cat(", with attention halved ", to_text(out.pairs.ratio(causal), 3)) : ""));
  say(cat("peak memory ", to_text(out.peak_rss_mib, 0), " MiB"));
  return out;
}

Outcome outcome_of(const Options& options, const Steps& steps, double amount, const std::string& unit, const std::string& mode,
                   const std::string& peer_unit) {
  const double peers = amount * static_cast<double>(options.shape.batch) / static_cast<double>(options.batch);
  return {amount / steps.pairs.time(), unit,
          steps.pairs.ceiling(),       steps.ratio,
          steps.peak_rss_mib,          [options, mode, peer_unit, peers] { return ask_peer(options, mode, peer_unit, peers); }};
}

}  // namespace troupe::benchmarks
