// Errors from outside the program (files, configurations, peers, timeouts) are values: Result<T>.
// A message states what was expected, what was found, where, and what to do.
// Programming errors go through check() in check.h instead.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <tuple>
#include <utility>

namespace troupe {

/// Kinds of failure. The process's exit code follows from the kind (launch/run/exit_code.h).
enum class Errc {
  /// The command line or the configuration names something that does not exist, or contradicts
  /// itself.
  usage,
  bad_input,    ///< a malformed data row, prompt or message
  not_found,    ///< a file, key, tensor or actor that does not exist
  corrupt,      ///< a file whose bytes contradict its format, its size or its checksum
  unsupported,  ///< well-formed, but troupe does not do it
  io,           ///< an operating system call failed
  timeout,      ///< a deadline passed
  closed,       ///< the other side has stopped
  full,         ///< a bounded queue or budget is exhausted
  cancelled,    ///< stopped by the user or a supervisor
  internal,     ///< an actor ended because of a bug in troupe
};

/// Names of the kinds in logs and JSON, in the order of the enumerators.
constexpr std::array<std::string_view, 11> names_of(Errc) {
  return {"usage",   "bad_input", "not_found", "corrupt",   "unsupported", "io",
          "timeout", "closed",    "full",      "cancelled", "internal"};
}
/// The name of a kind ("bad_input").
const char* to_string(Errc code);

struct Error {
  Errc code = Errc::internal;
  std::string what;
};
inline auto fields(Error& e) {
  return std::tie(e.code, e.what);
}

template <class T = void>
using Result = tl::expected<T, Error>;

/// `return fail(Errc::corrupt, cat(path, ": ..."));`
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string what) {
  return tl::unexpected<Error>(Error{code, std::move(what)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// The error of a failed result, after clean-up.
template <class T>
[[nodiscard]] tl::unexpected<Error> fail(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}

/// Returns from the enclosing function with the error of `result`, if it has one. `result` is
/// evaluated once; a Result that holds a value is left as it is.
///
///   auto text = read_file(path);
///   RETURN_IF_ERROR(text);
///   RETURN_IF_ERROR(check_header(*text));
#define RETURN_IF_ERROR(result)                                                 \
  do {                                                                          \
    if (auto&& troupe_result = (result); !troupe_result)                        \
      return ::troupe::fail(::troupe::Error(std::move(troupe_result.error()))); \
  } while (false)

/// An exception that carries an Error. Caught at an actor's boundary or in main only.
class Failure : public std::runtime_error {
 public:
  explicit Failure(Error error) : std::runtime_error(error.what), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

[[nodiscard]] inline tl::unexpected<Error> fail(const Failure& failure) {
  return tl::unexpected<Error>(failure.error());
}

/// Returns the value or throws Failure: for main, actors' handlers and tests.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw Failure(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace troupe
