// Folder: creates hostile files from small recipes. Calls can be chained:
// folder.model().cut("config.json", 20).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"

namespace troupe::hostile {

class Folder {
 public:
  /// Creates `path` anew, empty.
  explicit Folder(std::string path);
  const std::string& path() const { return path_; }

  /// Copies of files of tests/data: everything in `source`, or one file of it under a new name.
  const Folder& copy(const std::string& source, const std::string& into = "") const;
  /// A small model with its tokenizer and its chat template.
  const Folder& model() const;

  const Folder& write(const std::string& name, std::string_view bytes) const;
  /// Writes head, `piece` `times` times, then tail; in small parts, to limit the memory of this
  /// process.
  const Folder& repeat(const std::string& name, std::string_view head, std::string_view piece,
                       std::int64_t times, std::string_view tail) const;
  const Folder& append(const std::string& name, std::string_view bytes) const;
  /// Truncates a file to `size` bytes; a negative size removes bytes from its end.
  const Folder& cut(const std::string& name, std::int64_t size) const;
  /// Replaces bytes of the file from `at` on; a negative position counts from the end.
  const Folder& patch(const std::string& name, std::int64_t at, std::string_view bytes) const;
  /// Replaces the first occurrence of the text `from`, which must exist, by `to`.
  const Folder& swap(const std::string& name, std::string_view from, std::string_view to) const;
  /// Sets a member of a JSON file.
  const Folder& set(const std::string& name, const std::string& key, Json value) const;
  /// Applies any change to a JSON file.
  const Folder& edit(const std::string& name, const std::function<void(Json&)>& change) const;
  /// Writes a safetensors file: this header, then `data_bytes` zeros.
  const Folder& tensors(const std::string& name, std::string_view header,
                        std::int64_t data_bytes) const;

  const Folder& directory(const std::string& name) const;
  const Folder& pipe(const std::string& name) const;
  const Folder& link(const std::string& name, const std::string& target) const;
  const Folder& remove(const std::string& name) const;
  /// Runs a command of the program that must succeed; "@" is the folder.
  const Folder& prepare(const std::string& arguments) const;

 private:
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string path_;
};

/// Replaces every "@" by the path.
std::string placed(std::string text, const std::string& path);

}  // namespace troupe::hostile
