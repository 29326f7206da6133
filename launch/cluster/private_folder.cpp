#include "launch/cluster/private_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace troupe::launch {

Result<PrivateFolder> PrivateFolder::make() {
  constexpr std::size_t longest = 80;  // leaves room for the socket's name
  std::string failed = "cannot create a folder for sockets:";
  const char* const places[] = {std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), "/tmp"};
  for (const char* each : places) {
    if (!each || !*each) continue;
    std::string path = cat(each, "/troupe-XXXXXX");
    if (path.size() > longest) {
      failed += cat(" ", each, " is too long for the path of a socket;");
    } else if (::mkdtemp(path.data())) {
      return PrivateFolder(path);
    } else {
      failed += cat(" ", each, ": ", std::strerror(errno), ";");
    }
  }
  return fail(Errc::io, cat(failed, " set TMPDIR to a short writable path"));
}

Result<std::string> PrivateFolder::part(const std::string& name) const {
  std::string path = cat(path_, "/", name);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(Errc::io, cat("cannot create the folder ", path, ": ", std::strerror(errno)));
  return path;
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::launch
