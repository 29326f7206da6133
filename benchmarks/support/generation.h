// What the programs that generate have in common: prompts of 32 tokens, 128 new ones, as
// torch_lm.py and llama-bench do it.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/support/options.h"
#include "engine/generate/generator.h"

namespace troupe::benchmarks {

/// Tokens of the prompts and new ones.
struct Lengths {
  std::int64_t prompt = 32, fresh = 128;
};
Lengths lengths_of(const Options& options);

/// How long a batch of requests took.
struct Timing {
  double whole = 0;         ///< seconds, prompts included
  std::int64_t tokens = 0;  ///< new ones
  std::int64_t passes = 0;  ///< of the model
  double steady = 0;        ///< seconds from when every sequence had its first new token
  std::int64_t steady_tokens = 0, steady_passes = 0;
};

/// Requests to a model of the shape, and the device and the model that answer them.
class Requests {
 public:
  explicit Requests(const Options& options);
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// --batch requests with prompts that nothing shares, all at once. Greedy, or drawn from the
  /// whole vocabulary.
  Timing generate(bool greedy);
  /// Seconds for one prompt as long as the shape's sequences, and one new token.
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
