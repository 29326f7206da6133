// The other half of the benchmark `serve`: the whole server with a model.
#pragma once

namespace troupe::benchmarks {

/// `serve --shape a|b|c --dtype f32|bf16 --batch N` and the other common flags. Returns the exit
/// code.
int serve_engine(int count, char** words);

}  // namespace troupe::benchmarks
