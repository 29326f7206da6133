#include "engine/checkpoint/megatron/megatron_optimizer.h"

#include <algorithm>
#include <string>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

/// Indices of the tensors, group by group.
Groups groups_of(const std::vector<ShardTensor>& tensors) {
  Groups out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto same = [&](const std::vector<std::size_t>& group) {
      return tensors[group.front()].vector == tensors[i].vector;
    };
    const auto group = std::ranges::find_if(out, same);
    if (group == out.end())
      out.push_back({i});
    else
      group->push_back(i);
  }
  return out;
}

class Reader {
 public:
  Reader(const TorchFile& file, const std::vector<ShardTensor>& tensors)
      : file_(file), graph_(file.graph()), tensors_(tensors) {}

  Result<std::optional<RankOptimizer>> read();
  /// Errc::unsupported, if read() has left out settings beyond the limit.
  Result<> check_settings() const;

 private:
  /// Of the texts and numbers that are kept: a pickle may name one text many times.
  static constexpr std::size_t setting_limit = std::size_t{1} << 20;
  /// Whether another setting with a text of this size is kept.
  bool keeps(std::size_t text) const {
    setting_bytes_ += text + sizeof(PickleValue);
    return setting_bytes_ <= setting_limit;
  }
  const PickleNode* child(const PickleNode* node, std::string_view key) const {
    return node && node->kind == PickleKind::dict ? graph_.find(*node, key) : nullptr;
  }
  const PickleNode* item(const PickleNode* list, std::size_t index) const {
    return list && list->kind == PickleKind::list && index < list->items.size()
               ? &graph_.at(list->items[index])
               : nullptr;
  }
  /// The value of an integer key of a dict.
  const PickleNode* numbered(const PickleNode& dict, std::int64_t key) const;
  /// Texts and numbers; None for anything else.
  PickleValue scalar(const PickleNode& node) const;
  PickleValue number(const PickledTensor& tensor) const;
  PickleValue::Dict scalars(const PickleNode* dict) const;
  /// The entries of groups without numbers of parameters.
  Result<std::optional<RankOptimizer>> settings(const PickleNode& groups) const;
  void add_scheduler(OptimizerEntries& entries) const {
    if (const PickleNode* scheduler = child(&file_.root(), "opt_param_scheduler"))
      entries.scheduler = scalars(scheduler);
  }
  Result<const PickledTensor*> tensor(const PickleNode* node, std::size_t index,
                                      OptimizerTensor kind) const;
  tl::unexpected<Error> unknown() const {
    return fail(Errc::unsupported,
                cat(file_.path(),
                    ": the optimizer's state has another form than Megatron's; only weights of "
                    "such a checkpoint can be converted (--no-save-optim leaves the state out)"));
  }

  const TorchFile& file_;
  const PickleGraph& graph_;
  const std::vector<ShardTensor>& tensors_;
  mutable std::size_t setting_bytes_ = 0;
};

Result<> Reader::check_settings() const {
  if (setting_bytes_ <= setting_limit) return {};
  return fail(Errc::unsupported, cat(file_.path(), ": the optimizer's settings have more than ",
                                     setting_limit, " bytes"));
}

const PickleNode* Reader::numbered(const PickleNode& dict, std::int64_t key) const {
  if (dict.kind != PickleKind::dict) return nullptr;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleNode& name = graph_.at(dict.items[i]);
    if (name.kind == PickleKind::integer && name.number == key)
      return &graph_.at(dict.items[i + 1]);
  }
  return nullptr;
}

/// A tensor without axes, such as the steps of torch's AdamW.
PickleValue Reader::number(const PickledTensor& tensor) const {
  std::vector<std::byte> buffer;
  if (!tensor.shape.empty()) return {};
  const auto bytes = file_.bytes(tensor, buffer);
  if (!bytes) return {};
  return PickleValue(TensorSlot{tensor.type, {}, {bytes->begin(), bytes->end()}});
}

PickleValue Reader::scalar(const PickleNode& node) const {
  switch (node.kind) {
    case PickleKind::boolean:
      return node.number != 0;
    case PickleKind::integer:
      return node.number;
    case PickleKind::real:
      return PickleValue(TensorSlot::number(node.real));
    case PickleKind::text:
      return keeps(node.text.size()) ? PickleValue(node.text) : PickleValue();
    case PickleKind::tensor:
      return number(file_.tensor(node));
    case PickleKind::list:
    case PickleKind::tuple: {
      PickleValue::Tuple out;  // betas
      for (const PickleId id : node.items)
        if (graph_.at(id).items.empty() && keeps(0)) out.items.push_back(scalar(graph_.at(id)));
      return out;
    }
    default:
      return {};
  }
}

PickleValue::Dict Reader::scalars(const PickleNode* dict) const {
  PickleValue::Dict out;
  if (!dict || dict->kind != PickleKind::dict) return out;
  for (std::size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleNode& key = graph_.at(dict->items[i]);
    if (key.kind == PickleKind::text && key.text != "params" && keeps(key.text.size()))
      out.items.emplace_back(key.text, scalar(graph_.at(dict->items[i + 1])));
  }
  return out;
}

Result<const PickledTensor*> Reader::tensor(const PickleNode* node, std::size_t index,
                                            OptimizerTensor kind) const {
  const auto name = optimizer_tensor_names[static_cast<std::size_t>(kind)];
  const std::string where = cat(file_.path(), ": the optimizer's ", name, " of ",
                                quote(tensors_[index].name), ": expected ");
  if (!node || node->kind != PickleKind::tensor)
    return fail(Errc::corrupt,
                cat(where, "a tensor, found ", node ? to_string(node->kind) : "none"));
  const PickledTensor& found = file_.tensor(*node);
  if (found.shape != tensors_[index].shape())
    return fail(Errc::corrupt, cat(where, shape_text(tensors_[index].shape()), ", found ",
                                   shape_text(found.shape)));
  return &found;
}

Result<std::optional<RankOptimizer>> Reader::settings(const PickleNode& groups) const {
  RankOptimizer out{.distributed = true};
  const Groups order = groups_of(tensors_);
  if (groups.kind != PickleKind::list || groups.items.size() != order.size()) return unknown();
  for (std::size_t g = 0; g < order.size(); ++g) {
    const PickleNode* group = item(&groups, g);
    out.entries.groups[tensors_[order[g].front()].vector ? 1 : 0] = scalars(group);
    const PickleNode* step = child(group, "step");
    if (step && step->kind == PickleKind::integer)
      out.entries.step = TensorSlot::number(static_cast<double>(step->number));
  }
  add_scheduler(out.entries);
  return std::optional(std::move(out));
}

Result<std::optional<RankOptimizer>> Reader::read() {
  const PickleNode* outer = child(&file_.root(), "optimizer");
  if (!outer || outer->kind == PickleKind::none) return std::optional<RankOptimizer>();
  const PickleNode* masters = child(outer, "fp32_from_fp16_params");
  const PickleNode* inner = child(outer, "optimizer");
  if (!inner) inner = outer;  // of f32 models
  const PickleNode *state = child(inner, "state"), *groups = child(inner, "param_groups");
  if (!groups) return unknown();
  if (!state) return settings(*groups);
  RankOptimizer out;
  out.parts.resize(tensors_.size());
  std::int64_t number = 0;
  const Groups order = groups_of(tensors_);
  for (std::size_t g = 0; g < order.size(); ++g) {
    const bool vectors = tensors_[order[g].front()].vector;
    out.entries.groups[vectors ? 1 : 0] = scalars(item(groups, g));
    for (std::size_t j = 0; j < order[g].size(); ++j) {
      const std::size_t index = order[g][j];
      const PickleNode* entry = numbered(*state, number++);
      for (const auto kind : {OptimizerTensor::exp_avg, OptimizerTensor::exp_avg_sq}) {
        const auto slot = static_cast<std::size_t>(kind);
        const auto found = tensor(child(entry, optimizer_tensor_names[slot]), index, kind);
        RETURN_IF_ERROR(found);
        out.parts[index][slot] = *found;
      }
      if (const PickleNode* step = child(entry, "step")) out.entries.step = scalar(*step);
      if (!masters) continue;
      const auto found = tensor(item(item(masters, g), j), index, OptimizerTensor::master);
      RETURN_IF_ERROR(found);
      out.parts[index][static_cast<std::size_t>(OptimizerTensor::master)] = *found;
    }
  }
  if (numbered(*state, number)) return unknown();
  add_scheduler(out.entries);
  return std::optional(std::move(out));
}

class Writer {
 public:
  Writer(const std::vector<ShardTensor>& tensors, const OptimizerSource& source,
         std::vector<OptimizerSlot>& slots)
      : tensors_(tensors), source_(source), slots_(slots), groups_(groups_of(tensors)) {}

  Result<PickleValue> write();

 private:
  Result<PickleValue> slot(std::size_t index, OptimizerTensor kind);
  Result<PickleValue> moments(std::size_t index);
  Result<PickleValue> state_of_groups();
  Result<PickleValue> masters();

  const std::vector<ShardTensor>& tensors_;
  const OptimizerSource& source_;
  std::vector<OptimizerSlot>& slots_;
  Groups groups_;
};

Result<PickleValue> Writer::slot(std::size_t index, OptimizerTensor kind) {
  const ShardTensor& shard = tensors_[index];
  const auto type =
      source_.tensors[static_cast<std::size_t>(kind)]->type(shard.blocks.front().parameter);
  RETURN_IF_ERROR(type);
  slots_.push_back({&shard, kind});
  return PickleValue(TensorSlot{*type, shard.shape()});
}

Result<PickleValue> Writer::moments(std::size_t index) {
  PickleValue::Dict out;
  for (const auto kind : {OptimizerTensor::exp_avg, OptimizerTensor::exp_avg_sq}) {
    auto value = slot(index, kind);
    RETURN_IF_ERROR(value);
    out.items.emplace_back(std::string(optimizer_tensor_names[static_cast<std::size_t>(kind)]),
                           std::move(*value));
  }
  if (!std::holds_alternative<std::monostate>(source_.entries.step.value()))
    out.items.emplace_back("step", source_.entries.step);
  return PickleValue(std::move(out));
}

Result<PickleValue> Writer::state_of_groups() {
  PickleValue::Dict state, out;
  PickleValue::List list;
  for (const auto& group : groups_) {
    PickleValue::List numbers;
    for (const std::size_t index : group) {
      auto entry = moments(index);
      RETURN_IF_ERROR(entry);
      const auto number = static_cast<std::int64_t>(state.items.size());
      numbers.emplace_back(number);
      state.items.emplace_back(number, std::move(*entry));
    }
    PickleValue::Dict entry = source_.entries.groups[tensors_[group.front()].vector ? 1 : 0];
    entry.items.emplace_back("params", std::move(numbers));
    list.emplace_back(std::move(entry));
  }
  out.items = {{"state", std::move(state)}, {"param_groups", std::move(list)}};
  return PickleValue(std::move(out));
}

Result<PickleValue> Writer::masters() {
  PickleValue::List out;
  for (const auto& group : groups_) {
    PickleValue::List list;
    for (const std::size_t index : group) {
      auto value = slot(index, OptimizerTensor::master);
      RETURN_IF_ERROR(value);
      list.push_back(std::move(*value));
    }
    out.emplace_back(std::move(list));
  }
  return PickleValue(std::move(out));
}

Result<PickleValue> Writer::write() {
  auto inner = state_of_groups();
  RETURN_IF_ERROR(inner);
  if (source_.tensors[static_cast<std::size_t>(OptimizerTensor::master)] == nullptr) return inner;
  auto outer = masters();
  RETURN_IF_ERROR(outer);
  PickleValue::Dict out;
  out.items = {{"optimizer", std::move(*inner)}, {"fp32_from_fp16_params", std::move(*outer)}};
  return PickleValue(std::move(out));
}

}  // namespace

Result<std::optional<RankOptimizer>> read_optimizer(const TorchFile& file,
                                                    const std::vector<ShardTensor>& tensors) {
  Reader reader(file, tensors);
  auto out = reader.read();
  RETURN_IF_ERROR(reader.check_settings());
  return out;
}

Result<PickleValue> optimizer_value(const std::vector<ShardTensor>& tensors,
                                    const OptimizerSource& source,
                                    std::vector<OptimizerSlot>& slots) {
  return Writer(tensors, source, slots).write();
}

}  // namespace troupe::engine::checkpoint
