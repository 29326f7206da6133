// ResultFolder: a model folder that a command writes file by file. Its files get their names when
// they are complete, the folder gets its own when all of them are, and the same command continues
// after the process was killed at any moment.
//
// FOLDER is written as FOLDER.partial, and a file NAME in it as NAME.partial: written,
// synchronized, listed with its checksum in FOLDER.partial/troupe.progress.json, renamed. publish()
// renames the folder and removes the record. That a file exists never counts as complete: it must
// be in the record of the same job and have that checksum.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/manifest.h"

namespace troupe::engine::checkpoint {

/// Name, size and time of each file: equal where none was changed. Errc::not_found, io.
Result<Json> stamps_of(const std::vector<std::string>& paths);
/// The same of the regular files of a model folder, not of its subfolders; links are followed.
Result<Json> stamps_of_folder(const std::string& folder);

class ResultFolder {
 public:
  static constexpr std::string_view record_file = "troupe.progress.json";

  /// A new folder `path`, which does not exist or is empty; missing parents are created. `job`:
  /// everything that determines the bytes of the result; FOLDER.partial of another job is emptied.
  /// Errc::usage names what somebody else put there: any file of a folder that exists, a symbolic
  /// link, files of FOLDER.partial without a record, a folder of another user, and a process that
  /// is writing there. Errc::io.
  static Result<ResultFolder> create(const std::string& path, const Json& job);
  /// Files that are added to the existing folder `path`, where others may lie. No file is
  /// overwritten. Errors as above.
  static Result<ResultFolder> within(const std::string& path, const Json& job);
  ResultFolder(ResultFolder&&) noexcept = default;
  ResultFolder& operator=(ResultFolder&&) noexcept = default;
  /// Removes FOLDER.partial, if no file of it is complete.
  ~ResultFolder();

  /// Where files are written: FOLDER.partial, or the existing folder.
  const std::string& path() const { return path_; }
  /// The name of the result: FOLDER.
  const std::string& target() const { return target_; }
  /// The result was complete already, when the process that wrote it was killed.
  bool published() const { return published_; }
  /// Number of files that are complete.
  std::size_t complete_files() const { return files_.size(); }

  /// Writes the file `name`, such as "a/b.pt", unless it is complete: `write` creates the file
  /// whose path it gets and makes it durable. Returns whether it wrote. Errc::usage for a file of
  /// this name that somebody else put there; errors of `write`.
  Result<bool> add(const std::string& name,
                   const std::function<Result<>(const std::string& path)>& write);
  Result<bool> add(const std::string& name, std::string_view content);
  /// Lists all files that lie in FOLDER.partial as complete. For a writer of a whole folder, such
  /// as save_parameters(), which has made them durable under their own names.
  Result<> add_written();
  /// Errc::usage, which names the file, if there is one of this name that is not complete.
  Result<> check_free(const std::string& name) const;

  /// Gives the folder its name. Errc::usage for a file that is not part of the result; Errc::io.
  Result<> publish();

 private:
  ResultFolder(std::string target, std::string path, const Json& job)
      : target_(std::move(target)), path_(std::move(path)), job_(job) {}
  struct Record {
    Json job;
    std::vector<Manifest::File> files;
  };
  static Result<std::optional<Record>> read_record(const std::string& folder);
  bool replaces() const { return target_ != path_; }
  Result<> finish_published();
  Result<> lock();
  Result<> resume();
  Result<> keep_complete(const std::vector<Manifest::File>& listed);
  Result<> sweep() const;
  Result<> write_record() const;
  Result<> remove_record(const std::string& folder) const;
  const Manifest::File* find(std::string_view name) const;
  Result<> list(const std::string& name, const std::string& measured);

  std::string target_, path_;
  Json job_;
  Descriptor lock_;
  std::vector<Manifest::File> files_;  ///< complete
  bool begun_ = false;                 ///< the record is that of this process
  bool published_ = false;
};

}  // namespace troupe::engine::checkpoint
