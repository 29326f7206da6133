// Hostile files are made where they are needed, from small recipes. The calls can be chained:
// folder.model().cut("config.json", 20).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace troupe::hostile {

class Folder {
 public:
  /// `path` is made anew, empty.
  explicit Folder(std::string path);
  const std::string& path() const { return path_; }

  /// Copies of files of tests/data: everything in `source`, or one file of it under a new name.
  const Folder& copy(const std::string& source, const std::string& into = "") const;
  /// A small model with its tokenizer and its chat template.
  const Folder& model() const;

  const Folder& write(const std::string& name, std::string_view bytes) const;
  /// head, then `piece` so many times, then tail; written bit by bit, so that this process stays
  /// small.
  const Folder& repeat(const std::string& name, std::string_view head, std::string_view piece,
                       std::int64_t times, std::string_view tail) const;
  const Folder& append(const std::string& name, std::string_view bytes) const;
  /// Only the first `size` bytes stay; of a negative size, all but so many.
  const Folder& cut(const std::string& name, std::int64_t size) const;
  /// Bytes of the file from `at` on are replaced; a negative place counts from the end.
  const Folder& patch(const std::string& name, std::int64_t at, std::string_view bytes) const;
  /// The text `from`, which stands there at least once, becomes `to` at its first place.
  const Folder& swap(const std::string& name, std::string_view from, std::string_view to) const;
  /// A member of a JSON file.
  const Folder& set(const std::string& name, const std::string& key, Json value) const;
  /// Any change of a JSON file.
  const Folder& edit(const std::string& name, const std::function<void(Json&)>& change) const;
  /// A safetensors file: this header, then so many zeros.
  const Folder& tensors(const std::string& name, std::string_view header,
                        std::int64_t data_bytes) const;

  const Folder& directory(const std::string& name) const;
  const Folder& pipe(const std::string& name) const;
  const Folder& link(const std::string& name, const std::string& target) const;
  const Folder& remove(const std::string& name) const;
  /// The program does something with this folder that must go well; "@" is the folder.
  const Folder& prepare(const std::string& arguments) const;

 private:
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string path_;
};

/// Every "@" becomes the path.
std::string placed(std::string text, const std::string& path);

}  // namespace troupe::hostile
