// Rows of a task from files of the published layouts: csv, jsonl, json, parquet, each also with
// gzip where the reader takes it.
#pragma once

#include <string>
#include <vector>

#include "launch/evaluation/task_config.h"
#include "launch/evaluation/task_prompts.h"

namespace troupe::launch::evaluation {

struct DataFolders {
  std::string data;     ///< --task-data
  std::string fewshot;  ///< --fewshot-data; empty: `data`
};

/// The files of a split in the folder: those of data_files, else the first of the names that the
/// data set's authors and Hugging Face use. Errc::not_found, with the names that were tried.
Result<std::vector<std::string>> split_files(const TaskConfig& task, const std::string& split,
                                             const std::string& folder);

/// The items of a task and, with `examples`, the rows that examples are taken from.
/// Errc::not_found, bad_input (a row without a column of the layout, with file and line; no rows).
Result<TaskRows> load_rows(const TaskConfig& task, const DataFolders& folders, bool examples);

}  // namespace troupe::launch::evaluation
