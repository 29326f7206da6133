#include "tests/hostile/folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/hostile/program.h"

namespace troupe::hostile {

namespace {

namespace fs = std::filesystem;

// An impossible recipe is an error of the test.
void must(bool done, const std::string& what) {
  if (!done) throw std::runtime_error(what);
}

void stream(const std::string& path, std::ios::openmode mode,
            const std::function<void(std::ostream&)>& write) {
  std::ofstream out(path, std::ios::binary | mode);
  write(out);
  must(static_cast<bool>(out.flush()), "cannot write " + path);
}

}  // namespace

std::string placed(std::string text, const std::string& path) {
  for (auto at = text.find('@'); at != std::string::npos; at = text.find('@', at + path.size()))
    text.replace(at, 1, path);
  return text;
}

Folder::Folder(std::string path) : path_(std::move(path)) {
  fs::remove_all(path_);
  fs::create_directories(path_);
}

const Folder& Folder::copy(const std::string& source, const std::string& into) const {
  const fs::path from = fs::path(TROUPE_TEST_DATA) / source;
  if (fs::is_directory(from) && !into.empty()) directory(into);
  const fs::path to = into.empty() ? fs::path(path_) : fs::path(at(into));
  fs::copy(from, fs::is_directory(from) || !into.empty() ? to : to / from.filename(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return *this;
}

const Folder& Folder::model() const {
  return copy("models/stories260k/hf");
}

const Folder& Folder::write(const std::string& name, std::string_view bytes) const {
  stream(at(name), std::ios::trunc, [&](std::ostream& out) { out << bytes; });
  return *this;
}

const Folder& Folder::repeat(const std::string& name, std::string_view head, std::string_view piece,
                             std::int64_t times, std::string_view tail) const {
  stream(at(name), std::ios::trunc, [&](std::ostream& out) {
    out << head;
    for (std::int64_t i = 0; i < times; ++i) out << piece;
    out << tail;
  });
  return *this;
}

const Folder& Folder::append(const std::string& name, std::string_view bytes) const {
  stream(at(name), std::ios::app, [&](std::ostream& out) { out << bytes; });
  return *this;
}

const Folder& Folder::cut(const std::string& name, std::int64_t size) const {
  const auto before = static_cast<std::int64_t>(fs::file_size(at(name)));
  must(size <= before && -size <= before, name + " is too short to be cut");
  fs::resize_file(at(name), static_cast<std::uintmax_t>(size >= 0 ? size : before + size));
  return *this;
}

const Folder& Folder::patch(const std::string& name, std::int64_t place,
                            std::string_view bytes) const {
  std::string text = value_or_throw(read_file(at(name)));
  const auto begin =
      static_cast<std::size_t>(place >= 0 ? place : static_cast<std::int64_t>(text.size()) + place);
  must(begin + bytes.size() <= text.size(), name + " is too short for the patch");
  return write(name, text.replace(begin, bytes.size(), bytes));
}

const Folder& Folder::swap(const std::string& name, std::string_view from,
                           std::string_view to) const {
  std::string text = value_or_throw(read_file(at(name)));
  const auto found = text.find(from);
  must(found != std::string::npos, cat(name, " does not have ", quote(from)));
  return write(name, text.replace(found, from.size(), to));
}

const Folder& Folder::edit(const std::string& name,
                           const std::function<void(Json&)>& change) const {
  Json json = value_or_throw(read_json(at(name)));
  change(json);
  return write(name, json.dump());
}

const Folder& Folder::set(const std::string& name, const std::string& key, Json value) const {
  return edit(name, [&](Json& json) { json.set(key, value); });
}

const Folder& Folder::tensors(const std::string& name, std::string_view header,
                              std::int64_t data_bytes) const {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  write(name, cat(length, header));
  fs::resize_file(at(name), 8 + header.size() + static_cast<std::uintmax_t>(data_bytes));
  return *this;
}

const Folder& Folder::directory(const std::string& name) const {
  fs::create_directories(at(name));
  return *this;
}

const Folder& Folder::pipe(const std::string& name) const {
  remove(name);
  must(::mkfifo(at(name).c_str(), 0600) == 0, "cannot make a pipe");
  return *this;
}

const Folder& Folder::link(const std::string& name, const std::string& target) const {
  remove(name);
  fs::create_symlink(placed(target, path_), at(name));
  return *this;
}

const Folder& Folder::remove(const std::string& name) const {
  fs::remove_all(at(name));
  return *this;
}

const Folder& Folder::prepare(const std::string& arguments) const {
  const Ended ended = run_hostile(path_ + ".prepare", placed(arguments, path_), "", {});
  must(ended.code == 0,
       cat("the preparation ", arguments, " ended with ", ended.code, ": ", ended.err));
  return *this;
}

}  // namespace troupe::hostile
