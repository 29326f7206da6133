#include "benchmarks/support/training.h"

#include <chrono>
#include <thread>

#include "benchmarks/support/ceiling.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/instruction_peak.h"

namespace troupe::benchmarks {

engine::data::Experience random_batch(const ModelShape& shape, std::int64_t sequences,
                                      std::uint64_t seed) {
  engine::data::Experience batch;
  std::vector<float> mask(static_cast<std::size_t>(shape.sequence), 1.0f);
  mask[0] = 0;
  for (std::int64_t n = 0; n < sequences; ++n)
    batch.append(random_tokens(shape, shape.sequence, seed + static_cast<std::uint64_t>(n)), mask);
  batch.count = static_cast<double>(sequences * (shape.sequence - 1));
  return batch;
}

engine::train::Trainer make_trainer(engine::ops::Device& device, const Options& options) {
  return engine::train::Trainer(make_model(device, options.shape, true),
                                {.dtype = options.precision});
}

Work work_of(const ModelShape& shape, double tokens, int passes) {
  const double each = 1e-9 * passes * tokens;
  return {2 * each * static_cast<double>(shape.weights()),
          each * shape.attention(static_cast<double>(shape.sequence))};
}

namespace {

// Measures the ceiling, then waits until oneDNN's threads have stopped spinning.
double calm_rate(ProductCeiling& ceiling) {
  const double rate = ceiling.measure();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return rate;
}

constexpr double max_peak_ratio = 1.05;

std::string beyond_peak(const Steps& steps) {
  return cat("the operations counted are ", to_text(steps.peak_ratio, 2),
             " of what the processor's instructions can do (", to_text(steps.peak, 1),
             " GFLOP/s), twice: the count or the clock is wrong");
}

void say_steps(const Steps& steps, const Work& work, const ProductCeiling& ceiling) {
  const double all = work.products + work.attention, causal = work.products + work.attention / 2;
  const bool halved = work.attention > 0;
  say(cat("step ", to_text(steps.pairs.time(), 4), " s, ", steps.pairs.describe(), "; ",
          to_text(all / steps.pairs.time(), 1), " GFLOP/s",
          halved ? cat(", ", to_text(causal / steps.pairs.time(), 1),
                       " with attention halved for causal")
                 : ""));
  say(cat("square product: ours at best ", to_text(ceiling.ours(), 1), " GFLOP/s, oneDNN's ",
          ceiling.theirs() > 0 ? to_text(ceiling.theirs(), 1) : std::string("not here")));
  say(cat("share of the ceiling ", to_text(steps.ratio, 3),
          halved ? cat(", with attention halved ", to_text(steps.pairs.ratio(causal), 3)) : ""));
  say(cat("share of the instruction peak, ", to_text(steps.peak, 1),
          " GFLOP/s: ", to_text(steps.peak_ratio, 3)));
  say(cat("peak memory ", to_text(steps.peak_rss_mib, 0), " MiB"));
}

}  // namespace

Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work,
                 const std::function<void()>& step, const std::optional<Rival>& rival) {
  step();
  step();
  Steps out;
  out.peak_rss_mib = peak_rss_mib();
  if (rival)
    out.peer = [options, rival] {
      return ask_peer(options, rival->mode, rival->unit, rival->amount);
    };
  ProductCeiling ceiling(device, options);
  engine::ops::InstructionPeak peak(options.threads, options.precision, options.isa);
  bool peer_asked = false;
  const auto between = [&] {
    peak.measure();
    if (peer_asked || !options.peer || !rival || !peer_has_room(out.peak_rss_mib)) return;
    peer_asked = true;
    out.peer = [answer = out.peer()] { return answer; };
    step();
  };
  const auto rounds = [&] {
    peak.measure();
    out.pairs = in_pairs(
        options.rounds, [&] { return calm_rate(ceiling); }, [&] { return seconds(step); }, between);
    peak.measure();
    out.peak = 1e-9 * peak.best();
    out.peak_ratio = (work.products + work.attention / 2) / out.pairs.time() / out.peak;
    return out.peak_ratio <= max_peak_ratio;
  };
  if (!rounds() && !rounds()) throw Failure({Errc::internal, beyond_peak(out)});
  out.ratio = out.pairs.ratio(work.products + work.attention);
  say_steps(out, work, ceiling);
  return out;
}

Outcome outcome_of(const Steps& steps, double amount, const std::string& unit) {
  return {.value = amount / steps.pairs.time(),
          .unit = unit,
          .ceiling = steps.pairs.ceiling(),
          .ratio = steps.ratio,
          .peak_rss_mib = steps.peak_rss_mib,
          .peer = steps.peer,
          .peak = steps.peak,
          .peak_ratio = steps.peak_ratio};
}

}  // namespace troupe::benchmarks
