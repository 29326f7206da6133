// Metrics of the service in Prometheus' text format, with vLLM's names where they mean the same.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "engine/generate/sampling_params.h"
#include "engine/serving/generation_thread.h"

namespace troupe::launch::serve::api {

/// A histogram with fixed upper bounds.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  /// `counts`: of the bounds, and above.
  Histogram(std::vector<double> bounds, std::vector<std::int64_t> counts, double sum)
      : bounds_(std::move(bounds)), counts_(std::move(counts)), sum_(sum) {}
  void add(double value);
  /// The lines of one metric; `labels`: a="b",c="d".
  std::string text(const std::string& name, const std::string& help,
                   const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::int64_t> counts_;
  double sum_ = 0;
};

/// Seconds of a sequence: until it started, from there to its first token, from that to the last,
/// and from the request to its end.
struct SequenceTimes {
  double queued = 0, prefill = 0, decode = 0, whole = 0;
};

/// All functions may be called from any thread.
class Metrics {
 public:
  void first_token(double seconds);  ///< since the request
  void next_token(double seconds);   ///< since the token before it
  /// A request for n sequences of at most this number of tokens each.
  void accepted(int n, std::int64_t max_tokens);
  /// A finished sequence.
  void finished(engine::generate::FinishReason reason, std::int64_t prompt_tokens,
                std::int64_t tokens, const SequenceTimes& times);
  std::string text(const engine::serving::ServiceCounters& counters,
                   const std::string& model) const;

 private:
  static std::vector<double> time_bounds();
  static std::vector<double> token_bounds();
  mutable std::mutex mutex_;
  Histogram first_token_{time_bounds()}, next_token_{time_bounds()}, whole_{time_bounds()};
  Histogram queued_{time_bounds()}, prefill_{time_bounds()}, decode_{time_bounds()},
      running_{time_bounds()}, per_token_{time_bounds()};
  Histogram prompt_tokens_{token_bounds()}, tokens_{token_bounds()};
  Histogram n_{{1, 2, 5, 10, 20}}, max_tokens_{token_bounds()};
  std::array<std::int64_t, 3> reasons_{};
};

}  // namespace troupe::launch::serve::api
