// Rows of a task of the suite mindspeed: a file for each subject.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/evaluation/mindspeed/suite_options.h"

namespace troupe::launch::evaluation::mindspeed {

struct SubjectData {
  std::string name;        ///< the file's name without extension and _test, _val, _dev
  std::string file;        ///< its path
  std::vector<Json> rows;  ///< of MMLU, C-Eval and CMMLU: question, A, B, C, D, answer as texts
  std::vector<Json> dev;   ///< of the file's sibling in dev/, where they are requested
  std::int64_t pandas_cells = 0;  ///< cells that pandas prints otherwise than the file has them
};

/// The subjects of a task in the order of their names. `dev`: with the rows of dev/ beside the
/// folder of rows. Errc::usage without a folder, not_found, bad_input (a row without a column, with
/// file and line; a file without rows).
Result<std::vector<SubjectData>> subjects_of(const std::string& task, bool dev,
                                             const SuiteSettings& settings);

}  // namespace troupe::launch::evaluation::mindspeed
