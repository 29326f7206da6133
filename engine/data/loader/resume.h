// What a checkpoint says of the data, and whether it still holds.
#pragma once

#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

/// Fisher-Yates with counter-based draws: an order needs nothing but the seed and its own number.
std::vector<std::uint32_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t stream);

/// [{"name", "bytes", "xxh3"}].
Json files_state(const std::vector<FilePrint>& files);
/// Errc::bad_input: the files that `state` ("files") names are others; says which.
Result<> same_files(const std::vector<FilePrint>& files, const Json& state);
/// Errc::bad_input: another data.shuffle or train.seed than the state's.
Result<> same_shuffle(bool shuffle, std::uint64_t seed, const Json& state);
/// Errc::bad_input, in the words that begin every refusal to go on.
tl::unexpected<Error> refused(std::string what);

}  // namespace troupe::engine::data
