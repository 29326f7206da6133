// WeightsRoot: the folder below which a server finds checkpoints by their names.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe::launch::serve::api {

class WeightsRoot {
 public:
  /// Errc::usage unless the path is a folder.
  static Result<WeightsRoot> open(const std::string& folder);

  /// The folder of a checkpoint such as "run/step-100", all links followed. Errc::bad_input for
  /// names that lead out of the root, also by a link; not_found.
  Result<std::string> find(const std::string& name) const;

 private:
  explicit WeightsRoot(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;  // without links
};

}  // namespace troupe::launch::serve::api
