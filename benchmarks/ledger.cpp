// Benchmark of the ledger: durable rows per second, without payloads and with those of 512 tokens,
// when all rows of a batch are waited for at its end (a step of a run), and when each row is.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "benchmarks/support/scratch.h"
#include "engine/base/text/text.h"
#include "engine/ledger/ledger.h"

namespace troupe::benchmarks {
namespace {

using engine::ledger::Kind, engine::ledger::Ledger;

struct Load {
  const char* name;
  int groups, rows;           // waited for after each group
  std::size_t payload_bytes;  // of one row in six, as of a sample
};

double rows_per_second(const Load& load) {
  const ScratchFolder scratch;
  const auto output = value_or_throw(OutputFolder::open(scratch.path().string()));
  const auto ledger = value_or_throw(Ledger::open(output, {}));
  const auto began = std::chrono::steady_clock::now();
  for (int group = 0; group < load.groups; ++group) {
    std::int64_t last = 0;
    for (int n = 0; n < load.rows; ++n) {
      const bool sampled = load.payload_bytes > 0 && n % 6 == 0;
      last = value_or_throw(
          ledger->append({.kind = sampled ? Kind::sampled : Kind::rewarded,
                          .samples = {std::int64_t{group} * load.rows + n},
                          .batch = group,
                          .detail = R"({"reward":1,"parts":{"exact_match":1}})"},
                         sampled ? std::string(load.payload_bytes, 'x') : std::string()));
    }
    value_or_throw(ledger->wait_durable(last));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  return load.groups * load.rows / seconds.count();
}

void print() {
  constexpr Load loads[] = {{"6144 rows, 1024 payloads of 6 KiB, one wait", 10, 6144, 6144},
                            {"6144 rows without payloads, one wait", 10, 6144, 0},
                            {"256 rows, one wait", 200, 256, 0},
                            {"one row, one wait", 500, 1, 0}};
  for (const Load& load : loads) {
    std::vector<double> rates;
    for (int round = 0; round < 5; ++round) rates.push_back(rows_per_second(load));
    std::ranges::sort(rates);
    std::printf("%-46s %9.0f rows/s (median of 5; %.0f to %.0f)\n", load.name, rates[2],
                rates.front(), rates.back());
  }
}

}  // namespace
}  // namespace troupe::benchmarks

int main() {
  troupe::benchmarks::print();
}
