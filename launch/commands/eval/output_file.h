// EvalFile: the output file of an evaluation, one JSON line per item. A killed evaluation continues
// with the first item that is missing. The settings are stored beside it, in FILE.settings.json, so
// that a file of another command is not continued.
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

class EvalFile {
 public:
  /// Creates the file, or reads its complete lines; cuts off an incomplete last one. `settings`: an
  /// object. Errc::usage if the file was written with other settings (each difference is named),
  /// has none, or is in use. Errc::corrupt for a line that is not the item expected there, or more
  /// lines than `items`. Errc::io.
  static Result<EvalFile> open(const std::string& path, const Json& settings, std::size_t items);
  EvalFile(EvalFile&& other) noexcept;
  EvalFile& operator=(EvalFile&&) = delete;
  ~EvalFile();

  /// Lines that were there.
  const std::vector<Json>& lines() const { return lines_; }
  /// Appends a line with one write. Errc::io.
  Result<> append(const Json& line);

 private:
  EvalFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  Result<> check_settings(const Json& settings) const;
  Result<> read_lines(std::size_t items);

  int file_ = -1;  // holds a lock
  std::string path_;
  std::vector<Json> lines_;
};

}  // namespace troupe::launch::commands
