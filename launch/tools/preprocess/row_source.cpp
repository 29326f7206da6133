#include "launch/tools/preprocess/row_source.h"

#include "engine/data/readers/file_list.h"

namespace troupe::launch::tools::preprocess {
namespace data = engine::data;

Result<RowSource> RowSource::open(const std::vector<std::string>& input, std::int64_t max_rows,
                                  const data::ReadOptions& reading) {
  const auto paths = data::list_data_files(input);
  RETURN_IF_ERROR(paths);
  RowSource out;
  out.max_rows_ = max_rows;
  out.reading_ = reading;
  for (const std::string& path : *paths) {
    auto print = data::sampled_fingerprint(path);
    RETURN_IF_ERROR(print);
    out.files_.push_back(std::move(*print));
  }
  return out;
}

Result<std::optional<data::PendingRow>> RowSource::next() {
  if (max_rows_ > 0 && position_.number >= max_rows_) return std::nullopt;
  for (; position_.file < files_.size(); ++position_.file) {
    if (!reader_) {
      auto opened = data::open_rows(files_[position_.file].path, reading_);
      RETURN_IF_ERROR(opened);
      reader_ = std::move(*opened);
      if (position_.row > 0) RETURN_IF_ERROR(reader_->seek(position_.row));
    }
    auto row = reader_->next_pending();
    RETURN_IF_ERROR(row);
    if (*row) {
      position_.row = (*row)->row.index + 1;
      ++position_.number;
      return row;
    }
    reader_.reset();
    position_.row = 0;
  }
  return std::nullopt;
}

Result<> RowSource::seek(data::RowPosition position) {
  reader_.reset();
  position_ = position;
  return {};
}

std::uint64_t RowSource::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) sum += file.bytes;
  return sum;
}

std::uint64_t RowSource::bytes_of_finished() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < position_.file && i < files_.size(); ++i) sum += files_[i].bytes;
  return sum;
}

}  // namespace troupe::launch::tools::preprocess
