// Any bytes as a dataset of Megatron: refused, or every sequence can be read and a copy has the
// same tokens. Input: a byte with the length of .bin in units of 4 bytes, the .bin file, then the
// .idx file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "engine/data/megatron/gpt_dataset.h"
#include "engine/data/megatron/indexed_dataset_writer.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::engine::data::megatron;  // NOLINT: a program of one page
  static const troupe::fuzz::ScratchFolder folder;
  if (size == 0) return 0;
  const std::size_t tokens = std::min(std::size_t{data[0]} * 4, size - 1);
  folder.write("data.bin", troupe::fuzz::text_of(data + 1, tokens));
  folder.write("data.idx", troupe::fuzz::text_of(data + 1 + tokens, size - 1 - tokens));
  auto opened = IndexedDataset::open(folder.path() + "/data");
  if (!opened) return 0;
  const auto set = std::make_shared<const IndexedDataset>(std::move(*opened));
  auto copy = IndexedDatasetWriter::create(folder.path() + "/copy", set->type());
  if (!copy) return 0;
  if (!copy->add_dataset(*set) || !copy->finish()) std::abort();
  const auto again = IndexedDataset::open(folder.path() + "/copy");
  if (!again || again->documents() != set->documents()) std::abort();
  for (std::int64_t i = 0; i < set->sequences(); ++i) {
    const auto one = set->sequence(i), other = again->sequence(i);
    if (one.has_value() != other.has_value() || (one && *one != *other)) std::abort();
  }
  const auto samples =
      GptDataset::build(set, {0, set->sequences()}, std::nullopt, {.sequence_length = 3});
  if (samples && samples->size() > 0) {
    const auto sample = samples->sample(samples->size() - 1);
    if (sample && sample->tokens.size() != 3) std::abort();
  }
  return 0;
}
