// llama.cpp beside our generation, where a build of it is given.
#pragma once

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

/// Says what llama.cpp does with the GGUF file that TROUPE_LLAMA_MODEL names, and ours over it:
/// llama-bench, which TROUPE_LLAMA_BENCH names, reads a prompt and lets one sequence grow;
/// llama-batched-bench beside it lets --batch of them grow. With and without flash attention where
/// it can be told, the better one counts. Nothing where TROUPE_LLAMA_BENCH is not set.
void say_llama(const Options& options, double tokens_per_second, double prompt_per_second);

}  // namespace troupe::benchmarks
