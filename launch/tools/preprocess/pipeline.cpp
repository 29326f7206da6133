#include "launch/tools/preprocess/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/line_readers.h"

namespace troupe::launch::tools::preprocess {
namespace {

using engine::data::PendingRow;
using engine::data::RowPosition;

/// A task of a worker ends at this size or number of rows.
constexpr std::size_t batch_bytes = 256u << 10, batch_rows = 1024, waiting_batches = 2;
/// Progress is saved at these intervals, and at longer ones where it takes more than this share of
/// the time: workers soon wait for a main thread that waits for a disk.
constexpr double save_seconds = 0.2, save_share = 0.02;
constexpr double redraw_seconds = 0.2;

std::size_t text_bytes(const Json& value) {
  if (value.is_string()) return value.string().size();
  std::size_t sum = 8;
  if (value.is_array())
    for (const Json& item : value.array()) sum += text_bytes(item);
  if (value.is_object())
    for (const auto& [name, member] : value.object()) sum += name.size() + text_bytes(member);
  return sum;
}

/// One of the workers, for its lifetime.
class Turn {
 public:
  explicit Turn(std::counting_semaphore<>& turns) : turns_(turns) { turns_.acquire(); }
  ~Turn() { turns_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::counting_semaphore<>& turns_;
};

terminal::ProgressLine::Options progress_options() {
  auto options = terminal::stderr_options();
  options.redraw = redraw_seconds;
  return options;
}

/// Continues at a position. Returns the bytes of the files before it.
std::uint64_t seek(RowSource& rows, RowPosition position) {
  value_or_throw(rows.seek(position));
  return rows.bytes_of_finished();
}

}  // namespace

Preprocessing::Preprocessing(RowSource rows, const RowEncoder& encoder, TokenFiles files,
                             int workers, std::int64_t log_interval)
    : rows_(std::move(rows)),
      encoder_(&encoder),
      files_(std::move(files)),
      workers_(static_cast<std::size_t>(workers)),
      turns_(std::make_unique<std::counting_semaphore<>>(workers)),
      log_interval_(log_level() <= LogLevel::info ? log_interval : 0),
      progress_(stderr, progress_options(), rows_.bytes(), seek(rows_, files_.position()),
                terminal::steady_seconds) {
  if (written_.number > 0) log_info(cat("continuing at row ", written_.number + 1));
}

void Preprocessing::run() {
  double next_save = terminal::steady_seconds() + save_seconds;
  for (Batch batch = read(); !batch.rows.empty(); batch = read()) {
    start(std::move(batch));
    // Some batches wait for a worker, so that none is idle while this thread reads or writes.
    if (running_.size() >= workers_ + waiting_batches) finish_first();
    const double begin = terminal::steady_seconds();
    if (begin < next_save) continue;
    value_or_throw(files_.save(written_));
    const double end = terminal::steady_seconds();
    next_save = end + std::max(save_seconds, (end - begin) / save_share);
  }
  while (!running_.empty()) finish_first();
  value_or_throw(files_.finish(rows_.position()));
  progress_.finish(rows_.bytes(), counts(rows_.position()), log_interval_ > 0);
}

Preprocessing::Encoded Preprocessing::encode_rows(const RowEncoder& encoder,
                                                  std::vector<PendingRow> rows) {
  std::vector<std::vector<TokenDocument>> out;
  for (PendingRow& pending : rows) {
    const auto row = engine::data::complete(std::move(pending));
    RETURN_IF_ERROR(row);
    auto documents = encoder.encode(*row);
    RETURN_IF_ERROR(documents);
    if (!documents->empty()) out.push_back(std::move(*documents));
  }
  return out;
}

Preprocessing::Batch Preprocessing::read() {
  Batch batch;
  for (std::size_t bytes = 0; bytes < batch_bytes && batch.rows.size() < batch_rows;) {
    auto row = value_or_throw(rows_.next());
    if (!row) break;
    if (row->row.file != file_) in_file_ = 0;
    file_ = row->row.file;
    const std::size_t size = row->text ? row->text->size() : text_bytes(row->row.value);
    bytes += size;
    in_file_ += size;
    batch.rows.push_back(std::move(*row));
  }
  batch.end = rows_.position();
  batch.bytes = rows_.bytes_of_finished();
  const std::size_t file = batch.end.file;
  if (file < rows_.files().size()) batch.bytes += std::min(in_file_, rows_.files()[file].bytes);
  return batch;
}

void Preprocessing::start(Batch batch) {
  auto work = [encoder = encoder_, turns = turns_.get(), rows = std::move(batch.rows)]() mutable {
    const Turn turn(*turns);
    return encode_rows(*encoder, std::move(rows));
  };
  running_.push_back({std::async(std::launch::async, std::move(work)), batch.end, batch.bytes});
}

void Preprocessing::finish_first() {
  Running first = std::move(running_.front());
  running_.pop_front();
  const auto encoded = value_or_throw(first.encoded.get());
  for (const auto& documents : encoded) value_or_throw(files_.add(documents));
  written_ = first.end;
  const bool due = log_interval_ > 0 && written_.number - shown_row_ >= log_interval_;
  if (progress_.show(first.bytes, counts(written_), due)) shown_row_ = written_.number;
}

std::string Preprocessing::counts(RowPosition at) const {
  return cat(at.number, " rows ", files_.tokens(), " tokens");
}

}  // namespace troupe::launch::tools::preprocess
