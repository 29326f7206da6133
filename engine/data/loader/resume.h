// The data part of a checkpoint: writing it, and comparing it with the present data on resume.
#pragma once

#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

/// Name of the data part of a checkpoint in messages.
constexpr const char* data_state = "the checkpoint's data state";

/// A Fisher-Yates shuffle with counter-based random numbers: it depends on `seed` and `stream`
/// only.
std::vector<std::uint32_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t stream);

/// [{"name", "bytes", "xxh3"}].
Json files_state(const std::vector<FileFingerprint>& files);
/// Errc::bad_input if the files differ from those of `state` ("files"); names the first that does.
Result<> check_same_files(const std::vector<FileFingerprint>& files, const Json& state);
/// Errc::bad_input if data.shuffle or train.seed differ from those of `state`.
Result<> check_same_shuffle(bool shuffle, std::uint64_t seed, const Json& state);
/// Errc::bad_input with the common prefix "cannot resume: ".
tl::unexpected<Error> cannot_resume(std::string what);

}  // namespace troupe::engine::data
