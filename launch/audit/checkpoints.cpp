#include "launch/audit/checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/safetensors.h"
#include "launch/audit/payloads.h"

namespace troupe::launch::audit {
namespace {

namespace checkpoint = engine::checkpoint;

std::int64_t integer_of(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found && found->is_integer() ? found->integer() : 0;
}

// XXH3 of each tensor of a file in f32, in ascending order; nullopt where one has another type.
std::optional<std::vector<std::uint64_t>> tensor_checksums(const std::string& path) {
  const auto file = checkpoint::SafetensorsFile::open(path);
  if (!file) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const auto& tensor : file->tensors()) {
    if (tensor.type != checkpoint::StoredType::f32) return std::nullopt;
    const auto bytes = file->bytes(tensor);
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!file->read_f32(tensor.name, values)) return std::nullopt;
    out.push_back(checkpoint::checksum(values));
  }
  std::ranges::sort(out);
  return out;
}

std::string hash_of(const std::vector<std::uint64_t>& checksums) {
  std::string bytes;
  for (const std::uint64_t each : checksums)
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>((each >> shift) & 0xff));
  return xxh3_of(bytes);
}

// Weights that were published after as many batches as the checkpoint has.
void compare_weights(const AnchoredCheckpoint& each, const History& history, Findings& findings) {
  const auto state = checkpoint::read_training_state(each.path);
  if (!state) return;
  const auto published = history.weights().find(integer_of(state->state, "batches"));
  if (published == history.weights().end() || published->second.empty()) return;
  auto sums = tensor_checksums(each.path + "/model.safetensors");
  if (!sums) sums = tensor_checksums(each.path + "/adapter_model.safetensors");
  if (!sums) return;  // rounded, or several files
  ++findings.weights;
  const std::string found = hash_of(*sums);
  if (found != published->second)
    findings.add(Damage::weights,
                 cat(each.path, ": expected the weights ", published->second,
                     " that were published after ", published->first, " batches, found ", found));
}

}  // namespace

std::vector<AnchoredCheckpoint> read_checkpoints(const std::string& run, Findings& findings) {
  std::vector<AnchoredCheckpoint> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(run, failed)) {
    const auto step = checkpoint::step_of_name(entry.path().filename().string());
    if (!step || entry.is_symlink()) continue;
    AnchoredCheckpoint each{.step = *step, .path = entry.path().string(), .length = 0, .head = {}};
    if (const auto whole = checkpoint::verify_checkpoint(each.path); !whole) {
      // One that the run removes meanwhile is gone.
      if (entry.exists()) findings.add(Damage::checkpoint, whole.error().what);
      continue;
    }
    ++findings.checkpoints;
    const std::string path = each.path + "/training/journal.json";
    const auto journal = read_json(path);
    if (const Json* anchor = journal ? journal->find("ledger") : nullptr) {
      each.length = integer_of(*anchor, "length");
      each.head = get_string(*anchor, "head", path).value_or("");
    }
    out.push_back(std::move(each));
  }
  std::ranges::sort(out, {}, &AnchoredCheckpoint::step);
  return out;
}

void compare_checkpoints(const std::vector<AnchoredCheckpoint>& checkpoints, const Chain& chain,
                         const History& history, Findings& findings) {
  for (const AnchoredCheckpoint& each : checkpoints) {
    if (each.length > 0) {
      const auto head = chain.heads.find(each.length);
      if (head == chain.heads.end())
        findings.add(Damage::chain, cat(each.path, ": expected ", each.length,
                                        " rows or more in the ledger, found ", findings.rows));
      else if (head->second != each.head)
        findings.add(Damage::chain, cat(each.path, ": expected the hash ", each.head, " of row ",
                                        each.length, " of the ledger, found ", head->second));
    }
    const auto saved = history.saved().find(each.step);
    if (saved != history.saved().end() && !saved->second.empty()) {
      const auto manifest = checkpoint::measure_file(each.path + "/training/manifest.json");
      if (manifest && manifest->xxh3_128 != saved->second)
        findings.add(Damage::checkpoint,
                     cat(each.path, ": expected the manifest with the hash ", saved->second,
                         " that the ledger recorded, found ", manifest->xxh3_128));
    }
    compare_weights(each, history, findings);
  }
}

void compare_samples(const std::string& run, const History& history, Findings& findings) {
  const std::string path = run + "/samples.jsonl";
  const auto text = read_file(path);
  if (!text) return;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    const auto end = std::min(text->find('\n', begin), text->size());
    const auto line = parse_json(text->substr(begin, end - begin), cat(path, ":", ++number));
    begin = end + 1;
    if (!line) continue;  // a line that is being written
    const auto batch = history.batches().find(integer_of(*line, "step"));
    if (batch == history.batches().end()) continue;
    ++findings.logged;
    if (const std::int64_t id = integer_of(*line, "sample_id"); !batch->second.contains(id))
      findings.add(Damage::samples,
                   cat(path, ":", number, ": sample ", id,
                       " is not one of those that the ledger has of step ", batch->first));
  }
}

}  // namespace troupe::launch::audit
