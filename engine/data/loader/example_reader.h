// ExampleReader: reads the examples of one source row by row and counts the rows that are skipped.
// It can seek to any row.
#pragma once

#include <memory>

#include "engine/data/layouts/sample.h"
#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

/// Position of a row among the files of a source.
struct RowPosition {
  std::size_t file = 0;
  std::int64_t row = 0;
  std::int64_t number = 0;  ///< rows of the source before it, in all files
  bool operator==(const RowPosition&) const = default;
};

template <class T>
class ExampleReader {
 public:
  /// `options` and `encoder` outlive this. Errors of options and of the list of files.
  static Result<ExampleReader> open(const DataOptions& options, DataSource source,
                                    const TextEncoder& encoder);

  /// The examples of the next usable row; empty at the end. Errc::bad_input if more rows than the
  /// limit are malformed; errors of files.
  Result<std::vector<T>> next();
  /// Position of the row that next() reads first.
  RowPosition position() const { return position_; }
  Result<> seek(RowPosition position);

  /// The error of a source without a usable row.
  tl::unexpected<Error> no_examples() const;

  const std::vector<std::string>& files() const { return files_; }
  /// The normal form of the row whose examples next() returned last.
  const Sample& sample() const { return sample_; }
  /// Counts since open(), or since the caller reset them.
  DataReport& report() { return report_; }

 private:
  ExampleReader(const DataOptions& options, DataSource source, const TextEncoder& encoder);
  Result<bool> open_file();
  Result<std::vector<T>> convert(const Row& row);
  void drop(const Row& row, const Sample& sample);
  Result<Sample> sample_of(const Row& row);
  Result<> check_other_layout(const Row& row) const;
  Result<> skip_row(const Error& error);

  const DataOptions* options_;
  const TextEncoder* encoder_;
  DataSource source_;
  std::vector<std::string> files_;
  LayoutOptions layout_;
  std::size_t layout_file_ = 0;  // from whose first row the layout was detected
  DataReport report_;
  Sample sample_;
  std::unique_ptr<RowReader> reader_;  // reads files_[position_.file]; null: not open
  RowPosition position_;
};

}  // namespace troupe::engine::data
