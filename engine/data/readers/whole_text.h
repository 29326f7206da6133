// WholeText: all of a text file at once: a map of it, or what is inside it when it is compressed.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/file.h"

namespace troupe::engine::data {

class WholeText {
 public:
  /// Errc::not_found, io, corrupt; Errc::unsupported: compressed, and more than 64 MiB inside.
  static Result<WholeText> open(const std::string& path);
  /// Without a byte order mark.
  std::string_view text() const;
  /// What the file's own bytes are, which tells compressed ones.
  std::string_view bytes() const;

 private:
  explicit WholeText(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::string unpacked_;
};

}  // namespace troupe::engine::data
