// Shared code of the generation benchmarks: prompts of 32 tokens and 128 new tokens, as in
// torch_lm.py and llama-bench.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/support/options.h"
#include "engine/generate/generator.h"

namespace troupe::benchmarks {

/// Numbers of prompt tokens and new tokens.
struct Lengths {
  std::int64_t prompt = 32, fresh = 128;
};
Lengths lengths_of(const Options& options);

/// Times of a batch of requests.
struct Timing {
  double whole = 0;         ///< seconds, prompts included
  std::int64_t tokens = 0;  ///< new tokens
  std::int64_t passes = 0;  ///< forward passes
  double steady = 0;        ///< seconds from when every sequence had its first new token
  std::int64_t steady_tokens = 0, steady_passes = 0;
};

/// Requests to a model of the shape, and the device and the model that answer them.
class Requests {
 public:
  explicit Requests(const Options& options);
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// Runs --batch requests without shared prefixes, all at once: greedy, or sampled from the whole
  /// vocabulary.
  Timing generate(bool greedy);
  /// Returns the seconds for one prompt of the shape's sequence length and one new token.
  double prompt();

 private:
  void submit(std::int64_t prompt, std::int64_t fresh, bool greedy);

  Options options_;
  std::unique_ptr<engine::ops::Device> device_;
  std::unique_ptr<engine::models::Decoder> model_;
  std::int64_t begun_ = 0;  ///< requests that have their first token
  std::uint64_t next_ = 0;
  engine::generate::Generator generator_;
};

}  // namespace troupe::benchmarks
