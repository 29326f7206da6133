#include "engine/base/database/database.h"

#include <sqlite3.h>

#include <cerrno>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

Errc kind_of(int code) {
  switch (code & 0xff) {  // without the extension
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column that is missing
    case SQLITE_CONSTRAINT:
      return Errc::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Errc::timeout;
    case SQLITE_NOMEM:
      return Errc::full;
    default:
      return Errc::io;
  }
}

tl::unexpected<Error> database_error(sqlite3* database, const std::string& path,
                                     std::string_view operation) {
  const int code = sqlite3_extended_errcode(database);
  constexpr std::size_t shown = 60;
  if (operation.size() > shown) operation = operation.substr(0, shown);
  const int system = sqlite3_system_errno(database);  // of a failed operation on a file
  const bool of_files = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;
  return fail(kind_of(code), cat(path, ": ", operation, ": ", sqlite3_errmsg(database),
                                 of_files && system != 0 ? cat(": ", reason_of(system)) : "",
                                 " (SQLite error ", code, ")"));
}

}  // namespace

void Statement::Free::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter + 1, value) == SQLITE_OK,
        "Statement: no such parameter");
}

void Statement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), parameter + 1, text.data(), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK,
        "Statement: no such parameter, or a text of more than 1 GB");
}

void Statement::bind_null(int parameter) {
  check(sqlite3_bind_null(statement_.get(), parameter + 1) == SQLITE_OK,
        "Statement: no such parameter");
}

Result<bool> Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  auto* database = sqlite3_db_handle(statement_.get());
  if (code != SQLITE_DONE) {
    auto failed = database_error(database, path_, sqlite3_sql(statement_.get()));
    sqlite3_reset(statement_.get());
    return failed;
  }
  sqlite3_reset(statement_.get());
  return false;
}

Result<> Statement::run() {
  const auto row = next();
  RETURN_IF_ERROR(row);
  if (*row) sqlite3_reset(statement_.get());
  return {};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Result<Database> Database::open(const std::string& path, Access access) {
  sqlite3* opened = nullptr;
  // A reader that could not write would leave the files of the write-ahead log behind.
  const int code =
      sqlite3_open_v2(path.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, nullptr);
  Database out(opened, path);
  if (opened == nullptr) return fail(Errc::full, cat(path, ": no memory for a database"));
  if (code != SQLITE_OK) return database_error(opened, path, "cannot open the database");
  sqlite3_extended_result_codes(opened, 1);
  sqlite3_busy_timeout(opened, 1000 * lock_seconds);
  if (access == Access::read) RETURN_IF_ERROR(out.run("PRAGMA query_only = 1"));
  return out;
}

Result<> Database::run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return database_error(database_.get(), path_, sql);
}

int Database::system_error() const {
  const int code = sqlite3_extended_errcode(database_.get());
  if ((code & 0xff) == SQLITE_FULL) return ENOSPC;
  return (code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(database_.get()) : 0;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return database_error(database_.get(), path_, sql);
  return Statement(statement, path_);
}

}  // namespace troupe
