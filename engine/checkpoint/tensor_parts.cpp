#include "engine/checkpoint/tensor_parts.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

using parallel::Range;

SafetensorsLayout layout_of(StoredType type, const std::vector<TensorSource>& tensors) {
  std::vector<TensorPlan> plans;
  for (const auto& tensor : tensors)
    plans.push_back({tensor.layout.name, type, tensor.layout.shape()});
  return lay_out(plans);
}

}  // namespace

TensorParts::TensorParts(const nn::Parameters& parameters, std::vector<Tensor> arenas)
    : own_(&parameters),
      whole_(&parameters),
      arenas_(std::move(arenas)),
      undivided_(arenas_.size()) {
  find_written();
}

TensorParts::TensorParts(OfRank own, const parallel::Mesh& mesh)
    : own_(&own.parameters),
      whole_(own.whole ? own.whole : own_),
      arenas_(std::move(own.arenas)),
      undivided_(arenas_.size()),
      shards_(own.shards),
      mesh_(&mesh) {
  for (auto& arena : own.divided) {
    check(arena.count() == shards_->count(), "TensorParts: a shard of another model");
    arenas_.push_back(std::move(arena));
  }
  find_written();
  if (mesh.grid().tp > 1) skip_earlier_ranks();
  if (mesh.grid().pp > 1) skip_earlier_stages();
}

void TensorParts::find_written() {
  for (std::size_t i = 0; i < undivided_; ++i)
    check(arenas_[i].count() == own_->count(), "TensorParts: arena of another model");
  std::int64_t at = 0;
  for (const auto& parameter : own_->all()) {
    starts_.push_back(at);
    at += parameter.value.count();
    written_.emplace_back(Range{parameter.shard.begin, parameter.shard.end});
  }
}

void TensorParts::skip_earlier_ranks() {
  parallel::Communicator& tp = mesh_->tp();
  std::vector<Range> mine, all;
  for (const auto& range : written_) mine.push_back(*range);
  all.resize(mine.size() * static_cast<std::size_t>(tp.size()));
  tp.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                "the parts of the tensors");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (int rank = 0; rank < tp.rank(); ++rank)
      mine[i].begin =
          std::max(mine[i].begin, all[static_cast<std::size_t>(rank) * mine.size() + i].end);
    const bool whole = own_->all()[i].shard.whole();
    if (whole ? tp.rank() > 0 : mine[i].size() <= 0)
      written_[i].reset();
    else
      written_[i] = mine[i];
  }
}

// A tied table is on the first and on the last stage.
void TensorParts::skip_earlier_stages() {
  parallel::Communicator& pp = mesh_->pp();
  std::vector<std::uint8_t> mine, all;
  for (const auto& parameter : whole_->all()) mine.push_back(own_->find(parameter.name) != nullptr);
  all.resize(mine.size() * static_cast<std::size_t>(pp.size()));
  pp.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                "the tensors of the stages");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::size_t owner = 0;
    while (owner < static_cast<std::size_t>(pp.size()) && all[owner * mine.size() + i] == 0)
      ++owner;
    const std::string& name = whole_->all()[i].name;
    check(owner < static_cast<std::size_t>(pp.size()), cat("TensorParts: no stage has ", name));
    if (mine[i] != 0 && owner < static_cast<std::size_t>(pp.rank()))
      written_[static_cast<std::size_t>(own_->find(name) - own_->all().data())].reset();
  }
}

std::optional<OwnBlock> TensorParts::block(std::size_t arena, const std::string& name) const {
  const nn::Parameter* parameter = own_->find(name);
  if (parameter == nullptr) return std::nullopt;
  const auto index = static_cast<std::size_t>(parameter - own_->all().data());
  const bool divided = arena >= undivided_;
  if (!written_[index] || (!divided && mesh_ != nullptr && mesh_->replicas().rank() != 0))
    return std::nullopt;
  const Shape shape = parameter->logical_shape();
  const auto& shard = parameter->shard;
  OwnBlock out;
  out.rows = out.written_rows = {0, shape.rank() == 0 ? 1 : shape[0]};
  out.columns = out.written_columns = {0, shape.stride()};
  if (!shard.whole()) {
    (shard.axis == 0 ? out.rows : out.columns) = {shard.begin, shard.end};
    (shard.axis == 0 ? out.written_rows : out.written_columns) = *written_[index];
  }
  const std::int64_t start = starts_[index], count = parameter->value.count();
  const Tensor& values = arenas_.at(arena);
  if (!divided) {
    out.stretches.push_back({0, count, values.flat(start, start + count)});
    return out;
  }
  for (const auto& piece : shards_->mine(start, start + count))
    out.stretches.push_back(
        {piece.begin - start, piece.end - start, values.flat(piece.at, piece.at + piece.size())});
  return out;
}

std::vector<TensorParts::Job> TensorParts::jobs() {
  std::vector<Job> all;
  for (Started& each : started_) {
    std::unordered_map<std::string_view, const TensorSource*> sources;
    for (const auto& tensor : each.tensors) sources.emplace(tensor.layout.name, &tensor);
    for (const auto& place : each.layout.tensors) {
      Job job{&each, &place, sources.at(place.name), own_->count(), 0};
      for (const models::Rows& rows : job.source->layout.rows) {
        const nn::Parameter* parameter = own_->find(rows.parameter);
        if (parameter == nullptr) continue;
        const std::int64_t start =
            starts_[static_cast<std::size_t>(parameter - own_->all().data())];
        job.begin = std::min(job.begin, start);
        job.end = std::max(job.end, start + parameter->value.count());
      }
      if (job.begin < job.end) all.push_back(job);
    }
  }
  std::ranges::stable_sort(all, {}, &Job::end);
  return all;
}

Result<> TensorParts::write_values(const Progress& progress,
                                   const std::function<Result<>()>& before_sync) {
  const std::vector<Job> all = jobs();
  // All values before these are written when the job before is.
  std::vector<std::int64_t> written_before(all.size() + 1, own_->count());
  for (std::size_t i = all.size(); i-- > 0;)
    written_before[i] = std::min(written_before[i + 1], all[i].begin);
  const auto cancelled = [] { return fail(Errc::cancelled, "the checkpoint was given up"); };
  if (!progress(written_before[0])) return cancelled();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [of, place, source, begin, end] = all[i];
    PartWriter writer(of->file, own_->device(), of->layout.header.size());
    RETURN_IF_ERROR(
        writer.write(*place, source->layout, [this, from = source](const std::string& parameter) {
          return block(from->arena, parameter);
        }));
    of->written += writer.written();
    if (!progress(written_before[i + 1])) return cancelled();
  }
  RETURN_IF_ERROR(before_sync());
  for (Started& each : started_) RETURN_IF_ERROR(each.file.finish());
  return {};
}

Result<> TensorParts::complete(Result<> mine) {
  const std::vector<Started> files = std::exchange(started_, {});
  RETURN_IF_ERROR(agree(std::move(mine), "the values of the tensors"));
  for (const Started& each : files) {
    const std::string& path = each.file.path();
    const auto bytes = sum(each.written, path);
    RETURN_IF_ERROR(bytes);
    const auto wanted = each.layout.tensors.empty() ? 0 : each.layout.tensors.back().end;
    check(*bytes == static_cast<std::int64_t>(wanted),
          cat(path, ": the ranks wrote ", *bytes, " of ", wanted, " bytes"));
  }
  return {};
}

Result<> TensorParts::start(const std::string& path, StoredType type,
                            const std::vector<TensorSource>& tensors) {
  SafetensorsLayout layout = layout_of(type, tensors);
  auto file = is_root() ? OutputFile::create(path) : Result<OutputFile>(fail(Errc::internal, ""));
  if (is_root()) {
    Result<> header = file ? file->write(layout.header) : Result<>(fail(file));
    RETURN_IF_ERROR(agree(std::move(header), path));
  } else {
    RETURN_IF_ERROR(agree({}, path));
    file = OutputFile::join(path);
  }
  RETURN_IF_ERROR(agree(file ? Result<>() : Result<>(fail(file)), path));
  own_->device().synchronize();
  started_.push_back({std::move(*file), std::move(layout), tensors});
  return {};
}

Result<> TensorParts::write(const std::string& path, StoredType type,
                            const std::vector<TensorSource>& tensors) {
  RETURN_IF_ERROR(start(path, type, tensors));
  if (deferred_) return {};
  return complete(write_values([](std::int64_t) { return true; }, [] { return Result<>(); }));
}

Result<> TensorParts::agree(Result<> mine, std::string_view what) {
  const auto all = sum(mine ? Result<std::int64_t>(0) : Result<std::int64_t>(fail(mine)), what);
  return all ? Result<>() : Result<>(fail(all));
}

Result<std::int64_t> TensorParts::sum(Result<std::int64_t> mine, std::string_view what) {
  if (mesh_ == nullptr || mesh_->grid().ranks() == 1) return mine;
  parallel::Communicator& world = mesh_->world();
  std::int64_t total = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    std::string text = mine ? "" : mine.error().what;
    std::array<std::int64_t, 3> header{mine ? -1 : static_cast<std::int64_t>(mine.error().code),
                                       mine ? *mine : 0, std::ssize(text)};
    world.broadcast_idle(std::as_writable_bytes(std::span(header)), rank, what);
    total += header[1];
    if (header[0] < 0) continue;
    text.resize(static_cast<std::size_t>(header[2]));
    world.broadcast(std::as_writable_bytes(std::span(text)), rank, what);
    return fail(static_cast<Errc>(header[0]), std::move(text));
  }
  return total;
}

std::string TensorParts::share(std::string text, std::string_view what) {
  if (mesh_ == nullptr || mesh_->grid().ranks() == 1) return text;
  parallel::Communicator& world = mesh_->world();
  std::int64_t size = std::ssize(text);
  world.broadcast_idle(std::as_writable_bytes(std::span(&size, 1)), 0, what);
  text.resize(static_cast<std::size_t>(size));
  world.broadcast(std::as_writable_bytes(std::span(text)), 0, what);
  return text;
}

}  // namespace troupe::engine::checkpoint
