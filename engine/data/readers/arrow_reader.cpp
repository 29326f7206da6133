#include "engine/data/readers/arrow_reader.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include "engine/base/text/text.h"
#include "engine/data/readers/arrow_json.h"

namespace troupe::engine::data {
namespace {

tl::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(Errc::corrupt,
              cat(path, ": expected a whole Arrow IPC file or stream, found: ", quote(what, 300)));
}

// The batches of a file in order.
class Batches {
 public:
  // The file is mapped, so sizes beyond its end are detected before anything is allocated.
  static Result<std::unique_ptr<Batches>> open(const std::string& path,
                                               std::shared_ptr<const MappedFile> file) {
    auto out = std::unique_ptr<Batches>(new Batches(path));
    const auto bytes = file->bytes();
    out->pool_ = std::make_unique<BoundedPool>(bytes.size());
    out->file_ = std::move(file);
    out->input_ = std::make_shared<arrow::io::BufferReader>(
        std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                        static_cast<std::int64_t>(bytes.size())));
    RETURN_IF_ERROR(out->restart());
    return out;
  }

  Result<> restart() {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = pool_.get();
    options.use_threads = false;
    stream_.reset();
    table_.reset();
    at_ = 0;
    if (auto status = input_->Seek(0); !status.ok()) return damaged(path_, status.ToString());
    const auto magic = input_->ReadAt(0, 6);
    if (magic.ok() && (*magic)->ToString() == "ARROW1") {
      auto table = arrow::ipc::RecordBatchFileReader::Open(input_, options);
      if (!table.ok()) return damaged(path_, table.status().ToString());
      table_ = *table;
      return {};
    }
    auto stream = arrow::ipc::RecordBatchStreamReader::Open(
        std::static_pointer_cast<arrow::io::InputStream>(input_), options);
    if (!stream.ok()) return damaged(path_, stream.status().ToString());
    stream_ = *stream;
    return {};
  }

  std::shared_ptr<arrow::Schema> schema() const {
    return table_ ? table_->schema() : stream_->schema();
  }

  // Returns null at the end.
  Result<std::shared_ptr<arrow::RecordBatch>> next() {
    std::shared_ptr<arrow::RecordBatch> batch;
    arrow::Status status;
    if (stream_) {
      status = stream_->ReadNext(&batch);
    } else if (at_ < table_->num_record_batches()) {
      status = table_->ReadRecordBatch(at_++).Value(&batch);
    }
    if (status.ok() && batch)
      status = batch->ValidateFull();  // offsets and codes of a file are not to be followed before
    if (!status.ok()) return damaged(path_, status.ToString());
    return batch;
  }

 private:
  explicit Batches(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::shared_ptr<const MappedFile> file_;  // outlives the batches, as the pool does
  std::unique_ptr<BoundedPool> pool_;
  std::shared_ptr<arrow::io::BufferReader> input_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> table_;
  int at_ = 0;
};

class ArrowReader : public RowReader {
 public:
  ArrowReader(std::string path, std::unique_ptr<Batches> batches)
      : path_(std::move(path)), batches_(std::move(batches)) {}

  Result<std::optional<Row>> next() override {
    while (!ended_ && index_ >= batch_begin_ + rows()) {
      const auto begin = batch_begin_ + rows();
      auto batch = batches_->next();
      RETURN_IF_ERROR(batch);
      ended_ = *batch == nullptr;
      batch_ = std::move(*batch);
      batch_begin_ = begin;
    }
    if (ended_) return std::nullopt;
    return read_row(*batch_, batch_begin_, path_, index_++);
  }

  Result<> seek(std::int64_t index) override {
    index_ = std::max<std::int64_t>(index, 0);
    if (index_ >= batch_begin_ && !ended_) return {};
    batch_.reset();
    batch_begin_ = 0;
    ended_ = false;
    return batches_->restart();
  }

 private:
  std::int64_t rows() const { return batch_ ? batch_->num_rows() : 0; }

  std::string path_;
  std::unique_ptr<Batches> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;  // rows from batch_begin_
  std::int64_t batch_begin_ = 0, index_ = 0;
  bool ended_ = false;
};

Result<std::unique_ptr<RowReader>> open(const std::string& path,
                                        std::shared_ptr<const MappedFile> file) {
  auto batches = Batches::open(path, std::move(file));
  RETURN_IF_ERROR(batches);
  RETURN_IF_ERROR(check_schema(*(*batches)->schema(), path));
  return std::unique_ptr<RowReader>(std::make_unique<ArrowReader>(path, std::move(*batches)));
}

}  // namespace

// The symbol that row_reader.cpp looks up.
extern "C" void troupe_open_arrow(const std::string& path, std::shared_ptr<const MappedFile> file,
                                  Result<std::unique_ptr<RowReader>>& out) {
  try {
    out = open(path, std::move(file));
  } catch (const std::exception& e) {
    out = damaged(path, e.what());
  }
}

}  // namespace troupe::engine::data
