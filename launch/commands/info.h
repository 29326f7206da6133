// `troupe info`: inspects a file or folder.
#pragma once

#include <string>
#include <vector>

#include "launch/model/model_overrides.h"

namespace troupe::launch::commands {

struct InfoOptions {
  std::string path;
  /// Columns of csv and tsv files without a header: data.column_names.
  std::vector<std::string> column_names;
  std::string checksums;            ///< compare only with this list of SHA-256 sums; may be empty
  model::ModelOverrides overrides;  ///< of config.json
  bool models = false;              ///< list the known models instead
  bool json = false;                ///< print one JSON object
};
/// Returns the exit code. Throws Failure.
int info(const InfoOptions& options);

}  // namespace troupe::launch::commands
