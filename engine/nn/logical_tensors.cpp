#include "engine/nn/logical_tensors.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {
namespace {

// The block of a logical matrix that one rank holds.
struct Block {
  std::int64_t columns;  // of the whole matrix
  std::int64_t row, rows, column, width;
};
Block block_of(const Parameter& parameter, std::int64_t begin, std::int64_t end) {
  const Shape whole = parameter.logical_shape();
  const std::int64_t columns = whole.stride(), rows = whole.rank() == 0 ? 1 : whole[0];
  if (parameter.shard.whole()) return {columns, 0, rows, 0, columns};
  if (parameter.shard.axis == 0) return {columns, begin, end - begin, 0, columns};
  return {columns, 0, rows, begin, end - begin};
}

// Calls visit(offset in the whole, offset in the part, length) for each contiguous run.
template <class Visit>
void each_run(const Block& block, Visit visit) {
  if (block.width == block.columns)
    return visit(block.row * block.columns, std::int64_t{0}, block.rows * block.columns);
  for (std::int64_t r = 0; r < block.rows; ++r)
    visit((block.row + r) * block.columns + block.column, r * block.width, block.width);
}

parallel::Communicator* unless_single(parallel::Communicator* group) {
  return group != nullptr && group->size() > 1 ? group : nullptr;
}

}  // namespace

std::int64_t logical_count(const Parameters& parameters) {
  std::int64_t count = 0;
  for (const auto& parameter : parameters.all()) count += parameter.logical_shape().count();
  return count;
}

LogicalTensors::LogicalTensors(const Parameters& parameters, std::vector<Tensor> arenas,
                               parallel::Communicator* tp)
    : parameters_(parameters),
      arenas_(std::move(arenas)),
      undivided_(arenas_.size()),
      tp_(unless_single(tp)) {
  exchange_parts();
}

LogicalTensors::LogicalTensors(const Parameters& parameters, std::vector<Tensor> arenas,
                               std::vector<Tensor> divided, const ArenaShards& shards,
                               const parallel::Mesh& mesh)
    : parameters_(parameters),
      arenas_(std::move(arenas)),
      undivided_(arenas_.size()),
      shards_(&shards),
      tp_(unless_single(&mesh.tp())) {
  for (auto& arena : divided) {
    check(arena.count() == shards.count(), "LogicalTensors: a shard of another model");
    arenas_.push_back(std::move(arena));
  }
  exchange_parts();
}

LogicalTensors::LogicalTensors(const Parameters& whole, std::unique_ptr<LogicalTensors> stage,
                               const parallel::Mesh& mesh)
    : parameters_(whole), undivided_(0), tp_(nullptr), stage_(std::move(stage)), mesh_(&mesh) {
  const auto stages = static_cast<std::size_t>(mesh.pp().size());
  std::vector<std::uint8_t> mine, all;
  for (const auto& parameter : whole.all())
    mine.push_back(stage_->parameters().find(parameter.name) != nullptr);
  all.resize(mine.size() * stages);
  mesh.pp().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                       "the tensors of the stages");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::size_t owner = 0;
    while (owner < stages && all[owner * mine.size() + i] == 0) ++owner;
    check(owner < stages, cat("LogicalTensors: no stage has ", whole.all()[i].name));
    owners_.push_back(static_cast<int>(owner));
  }
}

// Every rank learns which parts of the tensors the others of its tensor-parallel group hold.
void LogicalTensors::exchange_parts() {
  for (std::size_t i = 0; i < undivided_; ++i)
    check(arenas_[i].count() == parameters_.count(), "LogicalTensors: arena of another model");
  std::int64_t at = 0;
  std::vector<Part> mine;
  for (const auto& parameter : parameters_.all()) {
    starts_.push_back(at);
    at += parameter.value.count();
    mine.push_back({parameter.shard.begin, parameter.shard.end});
  }
  if (tp_ == nullptr) return;
  parts_.resize(mine.size() * static_cast<std::size_t>(tp_->size()));
  tp_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(parts_)),
                  "the parts of the tensors");
}

std::vector<float> LogicalTensors::own_part(std::size_t arena, std::size_t index) {
  const Parameter& parameter = parameters_.all().at(index);
  const std::int64_t start = starts_[index], end = start + parameter.value.count();
  ops::Device& device = parameters_.device();
  if (arena < undivided_) return ops::to_host(device, arenas_[arena].flat(start, end));
  parallel::Communicator& dp = shards_->dp();
  std::vector<float> mine;
  for (const auto& piece : shards_->mine(start, end)) {
    const auto values =
        ops::to_host(device, arenas_.at(arena).flat(piece.at, piece.at + piece.size()));
    mine.insert(mine.end(), values.begin(), values.end());
  }
  const std::vector<float> all = parallel::gather_floats(dp, mine, parameter.name);
  if (dp.rank() != 0) return {};
  std::vector<float> part(static_cast<std::size_t>(end - start));
  auto from = all.begin();
  for (int rank = 0; rank < dp.size(); ++rank)
    for (const auto& piece : shards_->within(start, end, rank)) {
      std::copy_n(from, piece.size(), part.begin() + (piece.begin - start));
      from += piece.size();
    }
  return part;
}

std::vector<float> LogicalTensors::gather_from_stage(std::size_t arena, std::size_t index) {
  const Parameter& wanted = parameters_.all().at(index);
  parallel::Communicator& pp = mesh_->pp();
  const int owner = owners_[index];
  const bool replica = mesh_->replicas().rank() != 0;
  std::vector<float> values;
  // Divided moments are gathered from all replicas, the others from the first one.
  if (owner == pp.rank() && (!replica || stage_->shards_ != nullptr)) {
    const auto& own = stage_->parameters();
    values =
        stage_->gather(arena, static_cast<std::size_t>(own.find(wanted.name) - own.all().data()));
  }
  if (replica || mesh_->coordinates().tp != 0) return {};
  if (owner == 0) return pp.rank() == 0 ? values : std::vector<float>();
  const std::string what = cat("the values of ", wanted.name);
  if (owner == pp.rank()) pp.send(std::as_bytes(std::span(values)), 0, what);
  if (pp.rank() != 0) return {};
  values.resize(static_cast<std::size_t>(wanted.logical_shape().count()));
  pp.receive(std::as_writable_bytes(std::span(values)), owner, what);
  return values;
}

std::vector<float> LogicalTensors::gather(std::size_t arena, std::size_t index) {
  if (stage_) return gather_from_stage(arena, index);
  const Parameter& parameter = parameters_.all().at(index);
  if (shards_ && shards_->dp().rank() != 0 && arena < undivided_) return {};
  std::vector<float> mine = own_part(arena, index);
  if (shards_ && shards_->dp().rank() != 0) return {};
  if (tp_ == nullptr || parameter.shard.whole()) return mine;
  const std::vector<float> all = parallel::gather_floats(*tp_, mine, parameter.name);
  std::vector<float> whole(static_cast<std::size_t>(parameter.logical_shape().count()));
  std::int64_t from = 0;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(tp_->size()); ++rank) {
    const Part part = parts_[rank * starts_.size() + index];
    const Block block = block_of(parameter, part.begin, part.end);
    each_run(block, [&](std::int64_t to, std::int64_t at, std::int64_t length) {
      std::copy_n(all.begin() + from + at, length, whole.begin() + to);
    });
    from += block.rows * block.width;
  }
  return whole;
}

namespace {

void visit_all(LogicalTensors& tensors, const parallel::Mesh& mesh, const VisitTensor& visit) {
  for (std::size_t i = 0; i < tensors.parameters().all().size(); ++i) {
    const auto whole = tensors.gather(0, i);
    if (mesh.is_root()) visit(whole);
  }
}

// Appends to `all`, which has room for the logical tensors.
VisitTensor appending(const Parameters& parameters, const parallel::Mesh& mesh,
                      std::vector<float>& all) {
  if (mesh.is_root()) all.reserve(static_cast<std::size_t>(logical_count(parameters)));
  return
      [&all](std::span<const float> whole) { all.insert(all.end(), whole.begin(), whole.end()); };
}

}  // namespace

void gather_each(const Parameters& parameters, const parallel::Mesh& mesh,
                 const VisitTensor& visit) {
  if (mesh.replicas().rank() != 0) return;
  LogicalTensors tensors(parameters, {parameters.values()}, &mesh.tp());
  visit_all(tensors, mesh, visit);
}

void gather_each(const Parameters& whole, const Parameters& stage, const parallel::Mesh& mesh,
                 const VisitTensor& visit) {
  LogicalTensors tensors(
      whole,
      std::make_unique<LogicalTensors>(stage, std::vector<Tensor>{stage.values()}, &mesh.tp()),
      mesh);
  visit_all(tensors, mesh, visit);
}

std::vector<float> gather_logical(const Parameters& parameters, const Tensor& arena,
                                  const parallel::Mesh& mesh, const ArenaShards* shards) {
  if (mesh.replicas().rank() != 0 && shards == nullptr) return {};
  LogicalTensors tensors = shards == nullptr
                               ? LogicalTensors(parameters, {arena}, &mesh.tp())
                               : LogicalTensors(parameters, {}, {arena}, *shards, mesh);
  std::vector<float> all;
  visit_all(tensors, mesh, appending(parameters, mesh, all));
  return all;
}

std::vector<float> gather_logical(const Parameters& parameters, const parallel::Mesh& mesh) {
  return gather_logical(parameters, parameters.values(), mesh);
}

std::vector<float> gather_logical(const Parameters& whole, const Parameters& stage,
                                  const parallel::Mesh& mesh) {
  std::vector<float> all;
  gather_each(whole, stage, mesh, appending(whole, mesh, all));
  return all;
}

void copy_shard(std::span<const float> logical, const Parameter& parameter, std::span<float> part) {
  check(std::ssize(logical) == parameter.logical_shape().count() &&
            std::ssize(part) == parameter.value.count(),
        "copy_shard: wrong length");
  each_run(block_of(parameter, parameter.shard.begin, parameter.shard.end),
           [&](std::int64_t from, std::int64_t to, std::int64_t length) {
             std::copy_n(logical.begin() + from, length, part.begin() + to);
           });
}

void scatter_logical(std::span<const float> logical, const Parameters& whole,
                     Parameters& parameters) {
  check(static_cast<std::int64_t>(logical.size()) == logical_count(whole),
        "scatter_logical: values of another model");
  std::vector<float> part;
  std::size_t start = 0, found = 0;
  for (const auto& tensor : whole.all()) {
    const auto count = static_cast<std::size_t>(tensor.logical_shape().count());
    const auto values = logical.subspan(start, count);
    start += count;
    Parameter* own = parameters.find(tensor.name);
    if (own == nullptr) continue;  // of another stage
    ++found;
    part.resize(static_cast<std::size_t>(own->value.count()));
    copy_shard(values, *own, part);
    parameters.device().upload(own->value, part);
  }
  check(found == parameters.all().size(), "scatter_logical: tensors that the whole does not have");
}

}  // namespace troupe::engine::nn
