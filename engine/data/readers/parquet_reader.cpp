#include "engine/data/readers/parquet_reader.h"

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>

#include "engine/base/text/text.h"
#include "engine/data/readers/arrow_json.h"

namespace troupe::engine::data {
namespace {

constexpr std::int64_t rows_per_batch = 1024;

// Row groups are read when their first row is requested, in batches of rows.
class ParquetReader : public RowReader {
 public:
  ParquetReader(std::string path, std::unique_ptr<BoundedPool> pool,
                std::unique_ptr<parquet::arrow::FileReader> file)
      : path_(std::move(path)), pool_(std::move(pool)), file_(std::move(file)) {}

  Result<> start() {
    std::shared_ptr<arrow::Schema> schema;
    if (auto status = file_->GetSchema(&schema); !status.ok()) return damaged(status.ToString());
    return check_schema(*schema, path_);
  }

  Result<std::optional<Row>> next() override {
    RETURN_IF_ERROR(guarded([&] { return load(); }));
    if (!batch_) return std::nullopt;
    return read_row(*batch_, batch_begin_, path_, index_++);
  }

  Result<> seek(std::int64_t index) override {
    index_ = std::max<std::int64_t>(index, 0);
    batches_.reset();
    batch_.reset();
    return {};
  }

 private:
  tl::unexpected<Error> damaged(const std::string& what) const {
    return fail(Errc::corrupt,
                cat(path_, ": expected a whole parquet file, found: ", quote(what, 300)));
  }

  template <class F>
  Result<> guarded(F&& f) {
    try {
      return f();
    } catch (const std::exception& e) {  // the parquet half of the library throws
      return damaged(e.what());
    }
  }

  // Loads the batch that contains index_; batch_ is null if there is no such row.
  Result<> load() {
    while (!batch_ || index_ >= batch_begin_ + batch_->num_rows()) {
      if (!batches_) {
        if (!open_group()) {
          batch_.reset();
          return Result<>{};
        }
        if (auto status = file_->GetRecordBatchReader({group_}, &batches_); !status.ok())
          return damaged(status.ToString());
        batch_.reset();
      }
      const auto begin = batch_ ? batch_begin_ + batch_->num_rows() : group_begin_;
      if (auto status = batches_->ReadNext(&batch_); !status.ok())
        return damaged(status.ToString());
      batch_begin_ = begin;
      if (!batch_) {
        if (begin < group_end_)
          return damaged(cat("row group ", group_, " has fewer rows than it says"));
        batches_.reset();
      }
    }
    return {};
  }

  // Opens the row group that contains index_; false if there is none.
  bool open_group() {
    const auto metadata = file_->parquet_reader()->metadata();
    std::int64_t begin = 0;
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      const auto rows = metadata->RowGroup(g)->num_rows();
      if (rows > 0 && index_ < begin + rows) {
        group_ = g;
        group_begin_ = begin;
        group_end_ = begin + rows;
        return true;
      }
      begin += std::max<std::int64_t>(rows, 0);
    }
    return false;
  }

  std::string path_;
  std::unique_ptr<BoundedPool> pool_;  // outlives what is made in it
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::int64_t index_ = 0;  // of the next row
  int group_ = 0;
  std::int64_t group_begin_ = 0, group_end_ = 0;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // of group_
  std::shared_ptr<arrow::RecordBatch> batch_;          // rows from batch_begin_
  std::int64_t batch_begin_ = 0;
};

Result<std::unique_ptr<RowReader>> open(const std::string& path) {
  auto input = arrow::io::ReadableFile::Open(path);
  if (!input.ok()) return fail(Errc::io, cat(path, ": ", input.status().ToString()));
  // Disables Arrow's own threads: a run has its threads, and the order of rows must not depend on
  // any.
  auto properties = parquet::default_arrow_reader_properties();
  properties.set_use_threads(false);
  properties.set_pre_buffer(false);
  properties.set_batch_size(rows_per_batch);
  parquet::arrow::FileReaderBuilder builder;
  std::unique_ptr<parquet::arrow::FileReader> file;
  const auto size = (*input)->GetSize();
  auto pool = std::make_unique<BoundedPool>(static_cast<std::uint64_t>(size.ok() ? *size : 0));
  auto status = builder.Open(*input, parquet::ReaderProperties(pool.get()));
  if (status.ok()) status = builder.memory_pool(pool.get())->properties(properties)->Build(&file);
  if (!status.ok())
    return fail(
        Errc::corrupt,
        cat(path, ": expected a whole parquet file, found: ", quote(status.ToString(), 300)));
  auto reader = std::make_unique<ParquetReader>(path, std::move(pool), std::move(file));
  RETURN_IF_ERROR(reader->start());
  return std::unique_ptr<RowReader>(std::move(reader));
}

}  // namespace

// The symbol that row_reader.cpp looks up.
extern "C" void troupe_open_parquet(const std::string& path,
                                    Result<std::unique_ptr<RowReader>>& out) {
  try {
    out = open(path);
  } catch (const std::exception& e) {
    out = fail(Errc::corrupt,
               cat(path, ": expected a whole parquet file, found: ", quote(e.what(), 300)));
  }
}

}  // namespace troupe::engine::data
