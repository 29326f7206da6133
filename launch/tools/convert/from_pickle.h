// `troupe convert --from-pickle`: rewrites pytorch_model.bin as safetensors.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe::launch::tools::convert {

struct FromPickleOptions {
  std::string folder;    ///< with pytorch_model.bin, or pytorch_model.bin.index.json and its shards
  std::string save_dir;  ///< empty: the safetensors files are written into `folder`
};

/// Writes each .bin file as a safetensors file with the same tensors and types, and the index.
/// Nothing of a pickle is executed; an entry that is no tensor is an error. Written as a
/// ResultFolder: the same command continues an interrupted conversion. Errc::usage (weights, or
/// files in the folder for the result, exist), not_found, corrupt, unsupported, io.
Result<> convert_pickles(const FromPickleOptions& options);

}  // namespace troupe::launch::tools::convert
