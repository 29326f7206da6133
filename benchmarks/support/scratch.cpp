#include "benchmarks/support/scratch.h"

#include <cstdlib>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-benchmark-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw Failure({Errc::io, cat("cannot make a temporary folder like ", name,
                                 "; set TMPDIR to one that can be written")});
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::benchmarks
