// Database: an SQLite database, the only user of that library. Errors of SQLite are values, with
// the file, the operation and SQLite's own message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace troupe {

/// A prepared statement. Parameters and columns count from 0. It must not outlive its database.
class Statement {
 public:
  void bind(int parameter, std::int64_t value);
  /// A copy is made.
  void bind(int parameter, std::string_view text);
  void bind_null(int parameter);

  /// The next row; false after the last one, with which the statement is reset. Errc::corrupt, io,
  /// timeout (another process holds a lock for longer than lock_seconds).
  Result<bool> next();
  /// Runs a statement that returns no rows.
  Result<> run();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  struct Free {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* statement, std::string path) : statement_(statement), path_(path) {}

  std::unique_ptr<sqlite3_stmt, Free> statement_;
  std::string path_;
};

class Database {
 public:
  /// Longest wait for a lock of another process.
  static constexpr int lock_seconds = 10;

  enum class Access { read, write };
  /// Opens a database; with Access::write an empty file becomes one. The file must exist, and its
  /// last component must not be a symbolic link. Errc::not_found, io, corrupt.
  static Result<Database> open(const std::string& path, Access access);

  /// Runs statements that return nothing that is of interest.
  Result<> run(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);

  /// errno of the last operation, if it failed because of a file: ENOSPC for a full disk; else 0.
  int system_error() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}

  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
};

}  // namespace troupe
