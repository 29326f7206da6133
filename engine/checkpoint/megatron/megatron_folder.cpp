#include "engine/checkpoint/megatron/megatron_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view layers_of_names[] = {"decoder.layers.",
                                                "language_model/encoder/layers."};
constexpr int rank_limit = 100;  // two digits in a folder's name
// Of the names of a file's tensors: paths of dicts, which a hostile pickle makes long.
constexpr std::size_t name_limit = 1000, names_limit = std::size_t{64} << 20;

Result<std::string> iteration_folder(const std::string& folder) {
  const std::string path = cat(folder, "/", tracker_file);
  auto text = read_file(path, 100);
  if (!text && text.error().code == Errc::not_found)
    return fail(Errc::not_found, cat(path,
                                     ": no such file; expected a checkpoint of Megatron, "
                                     "which has the number of an iteration there"));
  RETURN_IF_ERROR(text);
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  if (*text == "release") return folder + "/release";
  const auto iteration = parse_number<std::uint32_t>(*text);
  if (!iteration)
    return fail(Errc::corrupt,
                cat(path, ": expected an iteration or \"release\", found ", quote(*text)));
  return cat(folder, '/', iteration_name(*iteration));
}

/// The sharded formats of Megatron have a metadata file beside their shards.
Result<> check_not_sharded(const std::string& folder) {
  std::error_code ignored;
  for (const auto* name : {"/.metadata", "/metadata.json", "/common.pt"})
    if (std::filesystem::exists(folder + name, ignored))
      return fail(Errc::unsupported,
                  cat(folder,
                      ": a checkpoint of the format torch_dist or zarr; expected the format "
                      "torch. Run the command that wrote it once more with "
                      "--ckpt-convert-format torch --ckpt-convert-save DIR, then convert "
                      "DIR"));
  return {};
}

struct RankName {
  int tensor = 0, pipeline = 0;
};

/// The ranks of "mp_rank_01_002"; nothing for other names.
std::optional<RankName> rank_of(std::string_view name) {
  constexpr std::string_view prefix = "mp_rank_";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  RankName out;
  for (int* rank : {&out.tensor, &out.pipeline}) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), *rank);
    if (error != std::errc() || *rank < 0) return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    if (name.empty()) return out;
    if (name.front() != '_') return std::nullopt;
    name.remove_prefix(1);
  }
  return std::nullopt;
}

/// Numbers of tensor and pipeline ranks, from the names of the folders.
Result<RankName> count_ranks(const std::string& folder) {
  RankName out{-1, -1};
  std::error_code failed;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("mp_rank_")) continue;
    const auto rank = rank_of(name);
    if (!rank || rank->tensor >= rank_limit || rank->pipeline >= 1000)
      return fail(Errc::unsupported, cat(folder, "/", name,
                                         ": expected mp_rank_TT or mp_rank_TT_PPP; ranks of expert "
                                         "parallelism are not supported"));
    out.tensor = std::max(out.tensor, rank->tensor);
    out.pipeline = std::max(out.pipeline, rank->pipeline);
  }
  if (failed) return fail(Errc::not_found, cat(folder, ": ", failed.message()));
  if (out.tensor < 0)
    return fail(Errc::not_found, cat(folder, ": expected folders mp_rank_TT, found none"));
  return RankName{out.tensor + 1, out.pipeline + 1};
}

/// Local number of the layer of a tensor, and the rest of its name.
std::optional<std::int64_t> layer_of(std::string_view name) {
  for (const auto prefix : layers_of_names) {
    if (!name.starts_with(prefix)) continue;
    std::int64_t out = -1;
    const auto [end, error] =
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), out);
    if (error == std::errc() && out >= 0 && out < 10000) return out;
  }
  return std::nullopt;
}

/// Names that versions of the legacy layout write differently.
std::string usual_name(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> spellings[] = {
      {".input_layernorm.", ".input_norm."},
      {".post_attention_layernorm.", ".post_attention_norm."},
      {"/final_layernorm.", "/final_norm."}};
  if (!name.starts_with("language_model/")) return name;
  for (const auto& [other, usual] : spellings)
    if (const auto at = name.find(other); at != name.npos) name.replace(at, other.size(), usual);
  return name;
}

bool is_no_weight(std::string_view name, bool tied) {
  return name.ends_with("inv_freq") ||
         (tied && (name.find("output_layer") != name.npos ||
                   name.find("word_embeddings_for_head") != name.npos));
}

}  // namespace

std::string iteration_name(std::int64_t iteration) {
  const std::string digits = std::to_string(iteration);
  return cat("iter_", std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0'), digits);
}

std::string rank_folder(int tensor_rank, int pipeline_rank, int pipeline_ranks) {
  const auto digits = [](int value, std::size_t width) {
    const std::string text = std::to_string(value);
    return std::string(text.size() < width ? width - text.size() : 0, '0') + text;
  };
  return cat("mp_rank_", digits(tensor_rank, 2),
             pipeline_ranks > 1 ? cat("_", digits(pipeline_rank, 3)) : "");
}

Result<> MegatronFolder::open_files(const std::string& folder) {
  auto iteration = iteration_folder(folder);
  RETURN_IF_ERROR(iteration);
  folder_ = std::move(*iteration);
  RETURN_IF_ERROR(check_not_sharded(folder_));
  const auto ranks = count_ranks(folder_);
  RETURN_IF_ERROR(ranks);
  grid_.tensor = ranks->tensor;
  for (int pipeline = 0; pipeline < ranks->pipeline; ++pipeline)
    for (int tensor = 0; tensor < ranks->tensor; ++tensor) {
      auto opened = TorchFile::open(
          cat(folder_, "/", rank_folder(tensor, pipeline, ranks->pipeline), "/", rank_file));
      RETURN_IF_ERROR(opened);
      files_.push_back(std::move(*opened));
    }
  grid_.layers.resize(static_cast<std::size_t>(ranks->pipeline));
  return {};
}

namespace {
/// A dict of a pickle, and the path to it.
struct DictPlace {
  const PickleNode* dict;
  std::string path;
  int depth;
};
}  // namespace

/// The part of a virtual rank: "model", or "model0", "model1", ...
Result<MegatronFolder::Named> MegatronFolder::named(const TorchFile& file, int virtual_rank) {
  constexpr int depth = 6;
  constexpr std::size_t limit = 1u << 20;
  const PickleNode* model = file.graph().find(file.root(), cat("model", virtual_rank));
  if (!model && virtual_rank == 0) model = file.graph().find(file.root(), "model");
  Named out;
  if (!model) return out;
  std::vector<DictPlace> places{{model, "", 0}};
  std::set<const PickleNode*> seen{model};
  std::size_t bytes = 0;
  const auto refused = [&](std::string_view what) {
    return fail(Errc::unsupported, cat(file.path(), ": ", what));
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    const DictPlace place = places[i];
    for (std::size_t item = 0; item + 1 < place.dict->items.size(); item += 2) {
      const PickleNode &key = file.graph().at(place.dict->items[item]),
                       &value = file.graph().at(place.dict->items[item + 1]);
      const bool is_dict = value.kind == PickleKind::dict && place.depth < depth;
      if (key.kind != PickleKind::text || (value.kind != PickleKind::tensor && !is_dict)) continue;
      const std::size_t length = place.path.size() + key.text.size();
      if (length > name_limit || (bytes += length) > names_limit)
        return refused(cat("the names of its tensors: one of ", length, " bytes, expected at most ",
                           name_limit, ", and at most ", names_limit, " in all"));
      if (is_dict && !seen.insert(&value).second)
        return refused(cat("the dict ", quote(place.path + key.text),
                           " is in two places or contains itself; expected a tree of dicts"));
      if (is_dict)
        places.push_back({&value, cat(place.path, key.text, "/"), place.depth + 1});
      else
        out[usual_name(place.path + key.text)] = &file.tensor(value);
      if (out.size() + places.size() > limit) return refused(cat("more than ", limit, " tensors"));
    }
  }
  return out;
}

Result<> MegatronFolder::read_grid(const models::DecoderSpec& spec) {
  const auto& graph = file(0, 0).graph();
  const PickleNode& root = file(0, 0).root();
  int parts = 1;
  while (graph.find(root, cat("model", parts))) ++parts;
  for (int part = 0; part < parts; ++part) {
    for (auto& stage : grid_.layers) {
      const auto pipeline = static_cast<int>(&stage - grid_.layers.data());
      const auto tensors = named(file(0, pipeline), part);
      RETURN_IF_ERROR(tensors);
      std::set<std::int64_t> present;
      for (const auto& [name, stored] : *tensors)
        if (const auto layer = layer_of(name)) present.insert(*layer);
      auto& layers = stage.emplace_back();
      if (!present.empty())
        layers.assign(static_cast<std::size_t>(*present.rbegin()) + 1, empty_layer);
      for (const auto local : present) layers[static_cast<std::size_t>(local)] = next_layer_++;
    }
  }
  const auto first = named(file(0, 0), 0);
  RETURN_IF_ERROR(first);
  const auto legacy = first->find("language_model/embedding/word_embeddings/weight"),
             mcore = first->find("embedding.word_embeddings.weight");
  if (legacy == first->end() && mcore == first->end())
    return fail(Errc::corrupt, cat(file(0, 0).path(),
                                   ": expected model/embedding.word_embeddings.weight (mcore) "
                                   "or model/language_model/embedding/word_embeddings/weight "
                                   "(legacy), found neither"));
  grid_.names = mcore == first->end() ? MegatronNames::legacy : MegatronNames::mcore;
  const auto& shape = (mcore == first->end() ? legacy : mcore)->second->shape;
  if (shape.empty() || shape[0] > (std::int64_t{1} << 40) ||
      shape[0] * grid_.tensor < spec.vocabulary)
    return fail(Errc::corrupt,
                cat(file(0, 0).path(), ": an embedding of shape ", shape_text(shape), " on ",
                    grid_.tensor, " ranks for a vocabulary of ", spec.vocabulary));
  grid_.vocabulary = shape[0] * grid_.tensor;
  return {};
}

Result<> MegatronFolder::add_shards(const models::DecoderSpec& spec, int tensor, int pipeline,
                                    int part) {
  const TorchFile& from = file(tensor, pipeline);
  auto tensors = named(from, part);
  RETURN_IF_ERROR(tensors);
  for (ShardTensor& plan : shard_tensors(spec, grid_, tensor, pipeline, part)) {
    const auto found = tensors->find(plan.name);
    if (found == tensors->end())
      return fail(Errc::corrupt, cat(from.path(), ": no tensor ", quote(plan.name),
                                     ", which config.json asks for"));
    if (found->second->shape != plan.shape())
      return fail(Errc::corrupt,
                  cat(from.path(), ": tensor ", quote(plan.name), ": expected ",
                      shape_text(plan.shape()), ", found ", shape_text(found->second->shape)));
    for (const RowBlock& block : plan.blocks) {
      auto& places = places_[block.parameter];
      if (!block.copy && (places.empty() || places.back() != shards_.size()))
        places.push_back(shards_.size());
    }
    shards_.push_back(
        {static_cast<std::size_t>(pipeline * grid_.tensor + tensor), found->second, plan, part});
    tensors->erase(found);
  }
  for (const auto& [name, stored] : *tensors)
    if (!is_no_weight(name, spec.tied))
      return fail(Errc::corrupt, cat(from.path(), ": tensor ", quote(name),
                                     " is no weight of the model that config.json describes"));
  return {};
}

Result<MegatronFolder> MegatronFolder::open(const std::string& folder,
                                            const models::DecoderSpec& spec,
                                            const std::string& where) {
  MegatronFolder out;
  RETURN_IF_ERROR(out.open_files(folder));
  RETURN_IF_ERROR(out.read_grid(spec));
  RETURN_IF_ERROR(check_megatron(spec, out.grid_, where));
  for (int pipeline = 0; pipeline < out.grid_.pipeline(); ++pipeline)
    for (int tensor = 0; tensor < out.grid_.tensor; ++tensor)
      for (int part = 0; part < out.grid_.virtual_ranks(); ++part)
        RETURN_IF_ERROR(out.add_shards(spec, tensor, pipeline, part));
  return out;
}

Result<MegatronFolder> MegatronFolder::open_adapter(const std::string& folder) {
  MegatronFolder out;
  RETURN_IF_ERROR(out.open_files(folder));
  return out;
}

Result<std::map<std::string, LoraPair>> MegatronFolder::adapters_of(int tensor, int pipeline,
                                                                    int part) const {
  const auto tensors = named(file(tensor, pipeline), part);
  RETURN_IF_ERROR(tensors);
  return lora_pairs(file(tensor, pipeline), *tensors);
}

Result<> MegatronFolder::add_adapter(const AdapterSettings& settings) {
  if (!(settings.alpha > 0))
    return fail(Errc::usage, "--lora-load: expected --lora-alpha, a number above 0");
  MegatronFolder adapter;
  RETURN_IF_ERROR(adapter.open_files(settings.folder));
  if (adapter.grid_.tensor != grid_.tensor || adapter.grid_.layers.size() != grid_.layers.size())
    return fail(Errc::usage, cat("--lora-load ", settings.folder, ": ", adapter.grid_.tensor, " x ",
                                 adapter.grid_.layers.size(), " ranks, and --load-dir has ",
                                 grid_.tensor, " x ", grid_.layers.size()));
  adapters_ = std::move(adapter.files_);
  alpha_ = settings.alpha;
  for (std::size_t file = 0; file < adapters_.size(); ++file)
    for (int part = 0; part < grid_.virtual_ranks(); ++part) {
      const auto tensors = named(adapters_[file], part);
      RETURN_IF_ERROR(tensors);
      auto pairs = lora_pairs(adapters_[file], *tensors);
      RETURN_IF_ERROR(pairs);
      for (Shard& shard : shards_) {
        const auto pair = pairs->find(shard.plan.name);
        if (shard.file != file || shard.part != part || pair == pairs->end()) continue;
        RETURN_IF_ERROR(check_lora_pair(pair->second, shard.plan, settings));
        shard.lora = pair->second;
        pairs->erase(pair);
      }
      if (!pairs->empty())
        return fail(Errc::usage,
                    cat(adapters_[file].path(), ": an adapter of ", quote(pairs->begin()->first),
                        ", which --load-dir does not have"));
    }
  const auto adapted = [](const Shard& shard) { return shard.lora.file != nullptr; };
  if (std::ranges::none_of(shards_, adapted))
    return fail(Errc::usage, cat("--lora-load ", settings.folder, ": no tensor lora_A or lora_B"));
  return {};
}

Result<> MegatronFolder::read_distributed(std::size_t file, std::size_t first, std::size_t count) {
  const std::string& weights = files_[file].path();
  const std::string path =
      cat(weights.substr(0, weights.size() - rank_file.size()), distributed_file);
  auto state = TorchFile::open(path);
  if (!state && state.error().code == Errc::not_found)
    return fail(Errc::unsupported,
                cat(path,
                    ": no such file; the optimizer's state of a checkpoint that was saved with "
                    "--use-distributed-optimizer is expected there, only its weights can be "
                    "converted"));
  RETURN_IF_ERROR(state);
  std::vector<RankParameter> parameters;
  for (std::size_t i = first; i < first + count; ++i)
    parameters.push_back({&shards_[i].plan, shards_[i].stored, shards_[i].part});
  auto parts = distributed_parts(*state, files_[file], parameters);
  RETURN_IF_ERROR(parts);
  const std::vector<DistributedPart>& kept = distributed_.emplace_back(std::move(*parts));
  for (std::size_t i = 0; i < count; ++i) {
    Shard& shard = shards_[first + i];
    const bool has_own = shard.stored->type != StoredType::f32;
    shard.optimizer = {&kept[i][0], &kept[i][1], has_own ? &kept[i][2] : nullptr};
  }
  states_.push_back(std::move(*state));
  return {};
}

Result<bool> MegatronFolder::read_optimizer_state() {
  std::size_t with = 0;
  for (std::size_t file = 0, first = 0; file < files_.size(); ++file) {
    std::vector<ShardTensor> tensors;  // the shards of a file follow each other
    while (first + tensors.size() < shards_.size() && shards_[first + tensors.size()].file == file)
      tensors.push_back(shards_[first + tensors.size()].plan);
    auto state = read_optimizer(files_[file], tensors);
    RETURN_IF_ERROR(state);
    if (*state) {
      ++with;
      if ((*state)->distributed) RETURN_IF_ERROR(read_distributed(file, first, tensors.size()));
      for (std::size_t i = 0; i < (*state)->parts.size(); ++i)
        shards_[first + i].optimizer = (*state)->parts[i];
      optimizer_ = std::move((*state)->entries);
    }
    first += tensors.size();
  }
  if (with != 0 && (with != files_.size() || (!states_.empty() && states_.size() != with)))
    return fail(Errc::corrupt, cat(folder_, ": ", with, " of ", files_.size(),
                                   " files have the optimizer's state, ", states_.size(),
                                   " in the form of the distributed one; expected all or none"));
  return with > 0;
}

std::int64_t MegatronFolder::iteration() const {
  const TorchFile& first = files_.front();
  const PickleNode* found = first.graph().find(first.root(), "iteration");
  return found && found->kind == PickleKind::integer && found->number > 0 ? found->number : 1;
}

/// The bytes of a rank's tensor; of a weight, with its adapter.
Result<std::span<const std::byte>> MegatronFolder::shard_bytes(
    const Shard& shard, Kind kind, std::vector<std::byte>& buffer) const {
  const TorchFile& file = kind && !states_.empty() ? states_[shard.file] : files_[shard.file];
  const auto bytes = file.bytes(*stored(shard, kind), buffer);
  RETURN_IF_ERROR(bytes);
  if (kind || !shard.lora.file) return bytes;
  auto merged = merge_lora(*bytes, shard.stored->type, shard.plan, shard.lora, alpha_);
  RETURN_IF_ERROR(merged);
  buffer = std::move(*merged);
  return std::span<const std::byte>(buffer);
}

std::vector<std::string> MegatronFolder::paths() const {
  std::vector<std::string> out;
  for (const auto* files : {&files_, &adapters_, &states_})
    for (const TorchFile& each : *files) out.push_back(each.path());
  return out;
}

std::vector<std::string> MegatronFolder::foreign() const {
  std::set<std::string> out;
  for (const TorchFile& each : files_)
    out.insert(each.graph().foreign.begin(), each.graph().foreign.end());
  return {out.begin(), out.end()};
}

Result<StoredType> MegatronFolder::type_of(const std::string& parameter, Kind kind) const {
  const auto found = places_.find(parameter);
  if (found == places_.end() || found->second.empty())
    return fail(Errc::corrupt, cat(folder_, ": no part of ", quote(parameter)));
  return stored(shards_[found->second.front()], kind)->type;
}

Result<std::span<const std::byte>> MegatronFolder::read_of(const std::string& parameter, Kind kind,
                                                           std::vector<std::byte>& buffer) const {
  const auto element = type_of(parameter, kind);
  RETURN_IF_ERROR(element);
  const std::size_t bytes = bits_of(*element) / 8;
  std::int64_t rows = 0, columns = 1;
  const auto& places = places_.at(parameter);
  for (const auto place : places)
    for (const RowBlock& block : shards_[place].plan.blocks)
      if (block.parameter == parameter) rows = std::max(rows, block.first + block.count);
  columns = shards_[places.front()].plan.all_columns;
  buffer.resize(static_cast<std::size_t>(rows * columns) * bytes);
  std::vector<std::byte> part;
  for (const auto place : places) {
    const Shard& shard = shards_[place];
    if (stored(shard, kind)->type != *element)
      return fail(Errc::corrupt,
                  cat(files_[shard.file].path(), ": tensor ", quote(shard.plan.name), ": expected ",
                      to_string(*element), ", found ", to_string(stored(shard, kind)->type)));
    const auto from = shard_bytes(shard, kind, part);
    RETURN_IF_ERROR(from);
    scatter_shard(shard.plan, *from, parameter, bytes, buffer);
  }
  return std::span<const std::byte>(buffer);
}

Result<StoredType> MegatronFolder::type(const std::string& parameter) const {
  return type_of(parameter, std::nullopt);
}

Result<std::span<const std::byte>> MegatronFolder::read(const std::string& parameter,
                                                        std::vector<std::byte>& buffer) const {
  return read_of(parameter, std::nullopt, buffer);
}

Result<StoredType> OptimizerTensors::type(const std::string& parameter) const {
  return folder_.type_of(parameter, kind_);
}

Result<std::span<const std::byte>> OptimizerTensors::read(const std::string& parameter,
                                                          std::vector<std::byte>& buffer) const {
  return folder_.read_of(parameter, kind_, buffer);
}

}  // namespace troupe::engine::checkpoint
