// Preprocessing: reads rows, has workers parse and encode them in batches and writes the results in
// the order of the rows.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "launch/terminal/byte_progress.h"
#include "launch/tools/preprocess/row_encoder.h"
#include "launch/tools/preprocess/row_source.h"
#include "launch/tools/preprocess/token_files.h"

namespace troupe::launch::tools::preprocess {

class Preprocessing {
 public:
  /// `encoder` outlives this. Throws Failure.
  Preprocessing(RowSource rows, const RowEncoder& encoder, TokenFiles files, int workers,
                std::int64_t log_interval);
  /// Throws the first error in the order of the rows. The rows before it are in the files, which
  /// can be continued.
  void run();

 private:
  /// Rows that one worker encodes.
  struct Batch {
    std::vector<engine::data::PendingRow> rows;
    engine::data::RowPosition end;
    std::uint64_t bytes = 0;  // of the input up to here, about
  };
  using Encoded = Result<std::vector<std::vector<TokenDocument>>>;
  struct Running {
    std::future<Encoded> encoded;
    engine::data::RowPosition end;
    std::uint64_t bytes = 0;
  };

  static Encoded encode_rows(const RowEncoder& encoder, std::vector<engine::data::PendingRow> rows);
  Batch read();
  void start(Batch batch);
  void finish_first();
  std::string counts(engine::data::RowPosition at) const;

  RowSource rows_;
  const RowEncoder* encoder_;
  TokenFiles files_;
  std::size_t workers_;
  std::unique_ptr<std::counting_semaphore<>> turns_;  // as many batches are encoded at a time
  engine::data::RowPosition written_ = files_.position();
  std::string file_;                 // that is being read
  std::uint64_t in_file_ = 0;        // bytes of text read from it
  const std::int64_t log_interval_;  // rows between lines of a log; 0: none
  std::int64_t shown_row_ = written_.number;
  terminal::ByteProgress progress_;
  std::deque<Running> running_;
};

}  // namespace troupe::launch::tools::preprocess
