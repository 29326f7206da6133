// troupe import on the files of tests/data/import.
#pragma once

#include <string>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch {

inline std::string example(const std::string& name) {
  return data("import/" + name);
}

struct Imported {
  ProgramOutput said;
  std::string file;  ///< the run file
};

inline Imported import_of(const std::string& arguments) {
  Imported out;
  out.file = scratch_folder() + "/run.yaml";
  out.said = run_program(cat("import ", arguments, " --output ", out.file));
  return out;
}

inline config::RunConfig config_in(const std::string& file) {
  return value_or_throw(recipes::config_of(value_or_throw(read_file(file)), file));
}

}  // namespace troupe::launch
