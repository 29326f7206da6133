// Writes a ledger as a run would, for recordings of what reaches the disk: batches of four samples,
// each of which is acknowledged by a line "LENGTH HEAD" in OUTPUT/acknowledged when it is durable.
// Usage: ledger_writer OUTPUT BATCHES
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "engine/base/files/output_folder.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"
#include "engine/ledger/ledger.h"
#include "engine/ledger/segments.h"

namespace troupe::engine::ledger {
namespace {

constexpr std::int64_t samples_of_batch = 4, batches_of_segment = 5;

class Writer {
 public:
  explicit Writer(const std::string& output)
      : output_(value_or_throw(OutputFolder::open(output))),
        ledger_(value_or_throw(Ledger::open(output_, {}))),
        acknowledged_(value_or_throw(output_.append("acknowledged"))) {
    append({.kind = Kind::started, .step = 0, .detail = R"({"length":0,"mode":"off","eta":0})"});
  }

  void write(std::int64_t batch) {
    append({.kind = Kind::published, .batch = batch, .hash = payload_hash("weights")});
    std::vector<std::int64_t> ids;
    for (std::int64_t n = 0; n < samples_of_batch; ++n) ids.push_back(samples_of_batch * batch + n);
    append({.kind = Kind::admitted, .samples = ids, .batch = batch});
    append({.kind = Kind::leased, .samples = ids, .batch = batch, .detail = R"({"rollout":"r"})"});
    write_payload(batch, ids);
    append({.kind = Kind::rewarded,
            .samples = ids,
            .batch = batch,
            .detail = cat(R"({"rewards":[0,1,0,1],"parts":{"rule":")", text(2000), "\"}}")});
    append({.kind = Kind::batched, .samples = ids, .batch = batch});
    append({.kind = Kind::committed,
            .batch = batch,
            .step = batch + 1,
            .detail = cat("{\"first\":", batch + 1, "}")});
    if ((batch + 1) % batches_of_segment == 0) end_segment();
    acknowledge();
  }

 private:
  void append(Row row, std::string payload = {}) {
    value_or_throw(ledger_->append(std::move(row), std::move(payload)));
  }
  std::string text(std::size_t most) {
    std::string out(draw_() % most, ' ');
    for (char& c : out) c = static_cast<char>('a' + draw_() % 26);
    return out;
  }
  void write_payload(std::int64_t batch, const std::vector<std::int64_t>& ids) {
    std::string payload, hashes, bytes, versions;
    for (const std::int64_t id : ids) {
      const std::string own = cat("tokens of sample ", id, ' ', text(6000));
      const char* separator = payload.empty() ? "" : ",";
      hashes += cat(separator, '"', payload_hash(own), '"');
      bytes += cat(separator, own.size());
      versions += cat(separator, "[[", batch, ",1]]");
      payload += own;
    }
    append({.kind = Kind::sampled,
            .samples = ids,
            .batch = batch,
            .detail = cat("{\"hashes\":[", hashes, "],\"bytes\":[", bytes, "],\"versions\":[",
                          versions, "]}")},
           std::move(payload));
  }
  // The segment before the last one is removed.
  void end_segment() {
    if (before_ > 0) value_or_throw(ledger_->remove_segment(before_));
    before_ = ledger_->segment();
    ledger_->start_segment();
  }
  void acknowledge() {
    const Anchor anchor = value_or_throw(ledger_->anchor());
    value_or_throw(write_whole(acknowledged_.get(), cat(anchor.length, ' ', anchor.head, '\n'),
                               "acknowledged"));
  }

  OutputFolder output_;
  std::unique_ptr<Ledger> ledger_;
  Descriptor acknowledged_;
  std::mt19937_64 draw_{7};
  std::int64_t before_ = 0;
};

}  // namespace
}  // namespace troupe::engine::ledger

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: ledger_writer OUTPUT BATCHES\n", stderr);
    return 2;
  }
  troupe::engine::ledger::Writer writer(arguments[1]);
  const std::int64_t batches = std::atoll(arguments[2]);
  for (std::int64_t batch = 0; batch < batches; ++batch) writer.write(batch);
}
