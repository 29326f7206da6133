// Comparison with llama.cpp, if a build of it is given.
#pragma once

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

/// Prints llama.cpp's rates for the GGUF file TROUPE_LLAMA_MODEL, and our rates divided by them:
/// TROUPE_LLAMA_BENCH (llama-bench) processes a prompt and generates one sequence;
/// llama-batched-bench beside it generates --batch sequences. Uses the faster of the runs with and
/// without flash attention. Does nothing unless TROUPE_LLAMA_BENCH is set.
void say_llama(const Options& options, double tokens_per_second, double prompt_per_second);

}  // namespace troupe::benchmarks
