// ExampleReader: the examples of one source, row after row, with an account of those that are left
// out. It can be sent to any row.
#pragma once

#include <memory>

#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

/// A row among the files of a source.
struct Place {
  std::size_t file = 0;
  std::int64_t row = 0;
  bool operator==(const Place&) const = default;
};

template <class T>
class ExampleReader {
 public:
  /// `options` and `encoder` outlive this. Errors of options and of the list of files.
  static Result<ExampleReader> open(const DataOptions& options, DataSource source,
                                    const TextEncoder& encoder);

  /// The examples of the next row that has some; none at the end. Errc::bad_input when the limit of
  /// bad rows is passed; errors of files.
  Result<std::vector<T>> next();
  /// Of the row that next() reads first.
  Place place() const { return place_; }
  Result<> seek(Place place);

  const std::vector<std::string>& files() const { return files_; }
  /// Since the beginning, or what it was set to.
  DataReport& report() { return report_; }

 private:
  ExampleReader(const DataOptions& options, DataSource source, const TextEncoder& encoder);
  Result<bool> open_file();
  Result<std::vector<T>> use(const Row& row);
  Result<> leave_out(const Error& error);
  void keep(const std::string& what);

  const DataOptions* options_;
  const TextEncoder* encoder_;
  DataSource source_;
  std::vector<std::string> files_;
  LayoutOptions layout_;
  DataReport report_;
  std::unique_ptr<RowReader> reader_;  // of files_[place_.file]; null: not open
  Place place_;
};

}  // namespace troupe::engine::data
