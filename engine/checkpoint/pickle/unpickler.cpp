#include "engine/checkpoint/pickle/unpickler.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/checkpoint/pickle/little_endian.h"
#include "engine/checkpoint/pickle/opcodes.h"
#include "engine/checkpoint/pickle/torch_objects.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view ordered_dict = "collections.OrderedDict",
                           rebuild_tensor = "torch._utils._rebuild_tensor_v2",
                           rebuild_parameter = "torch._utils._rebuild_parameter";

}  // namespace

tl::unexpected<Error> Unpickler::wrong(std::string_view what) const {
  return fail(Errc::corrupt, cat(where_, ": byte ", opcode_at_, " of the pickle: ", what));
}
tl::unexpected<Error> Unpickler::refused(std::string_view what) const {
  return fail(Errc::unsupported, cat(where_, ": byte ", opcode_at_, " of the pickle: ", what));
}

Result<std::string_view> Unpickler::take(std::uint64_t bytes) {
  if (bytes > pickle_.size() - at_)
    return wrong(cat("expected ", bytes, " more bytes, found ", pickle_.size() - at_));
  const auto* begin = reinterpret_cast<const char*>(pickle_.data()) + at_;
  at_ += bytes;
  return std::string_view(begin, bytes);
}

Result<std::uint64_t> Unpickler::number(std::size_t bytes) {
  const auto raw = take(bytes);
  RETURN_IF_ERROR(raw);
  std::uint64_t out = 0;
  std::memcpy(&out, raw->data(), bytes);
  return out;
}

Result<std::string_view> Unpickler::line() {
  constexpr std::size_t limit = 1000;
  const std::string_view rest(reinterpret_cast<const char*>(pickle_.data()) + at_,
                              std::min(pickle_.size() - at_, limit));
  const auto end = rest.find('\n');
  if (end == rest.npos) return wrong("expected a line");
  at_ += end + 1;
  return rest.substr(0, end);
}

Result<> Unpickler::push(PickleNode node) {
  if (graph_.nodes.size() >= limits_.nodes)
    return refused(cat("more than ", limits_.nodes, " values"));
  stack_.push_back(static_cast<PickleId>(graph_.nodes.size()));
  graph_.nodes.push_back(std::move(node));
  return {};
}

Result<PickleId> Unpickler::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return wrong("the stack is empty");
  return stack_.back();
}

Result<PickleId> Unpickler::pop() {
  const auto out = top();
  if (out) stack_.pop_back();
  return out;
}

Result<Unpickler::Items> Unpickler::pop_several(int count) {
  Items out(static_cast<std::size_t>(count));
  while (count-- > 0) {
    const auto id = pop();
    RETURN_IF_ERROR(id);
    out[static_cast<std::size_t>(count)] = *id;
  }
  return out;
}

Result<Unpickler::Items> Unpickler::pop_to_mark() {
  if (marks_.empty()) return wrong("no mark on the stack");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  Items out(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return out;
}

Result<> Unpickler::attach(PickleId parent, const Items& items, bool pairs) {
  if (pairs && items.size() % 2 != 0) return wrong("a key without a value");
  PickleNode& node = graph_.nodes[parent];
  for (const PickleId item : items) {
    const int depth = graph_.nodes[item].depth + 1;
    if (depth > limits_.depth) return refused(cat("more than ", limits_.depth, " levels"));
    node.depth = std::max(node.depth, static_cast<std::uint16_t>(depth));
    node.items.push_back(item);
  }
  return {};
}

Result<> Unpickler::push_counted(std::size_t width, PickleKind kind) {
  const auto length = number(width);
  RETURN_IF_ERROR(length);
  const auto raw = take(*length);
  RETURN_IF_ERROR(raw);
  PickleNode node{.kind = kind};
  node.text = *raw;
  if (kind == PickleKind::text && !valid_utf8(*raw)) return wrong("a text that is not UTF-8");
  return push(std::move(node));
}

// Two's complement, little-endian.
Result<> Unpickler::push_long(std::uint64_t bytes) {
  const auto raw = take(bytes);
  RETURN_IF_ERROR(raw);
  if (bytes > 8) {
    PickleNode node{.kind = PickleKind::bytes};
    node.text = *raw;
    return push(std::move(node));
  }
  const bool negative = bytes > 0 && static_cast<signed char>(raw->back()) < 0;
  std::int64_t value = negative ? -1 : 0;
  std::memcpy(&value, raw->data(), bytes);
  return push({.kind = PickleKind::integer, .number = value});
}

Result<> Unpickler::push_global(std::string module, std::string_view name) {
  PickleNode node{.kind = PickleKind::global};
  node.text = std::move(module.append(".").append(name));
  return push(std::move(node));
}

Result<> Unpickler::remember(std::uint64_t index) {
  const auto id = top();
  RETURN_IF_ERROR(id);
  memo_[index] = *id;  // at most one entry for each byte of the pickle
  return {};
}

Result<> Unpickler::recall(std::uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) return wrong(cat("no value is remembered under ", index));
  stack_.push_back(found->second);
  return {};
}

Result<> Unpickler::call(PickleId callable, PickleId arguments) {
  const std::string name = graph_.at(callable).kind == PickleKind::global
                               ? graph_.at(callable).text
                               : cat("a ", to_string(graph_.at(callable).kind));
  const PickleNode& tuple = graph_.at(arguments);
  if (tuple.kind != PickleKind::tuple) return wrong("arguments that are no tuple");
  const std::span<const PickleId> items = tuple.items;  // until the next node is made
  if (name == ordered_dict && items.empty()) return push({.kind = PickleKind::dict});
  if (name == rebuild_tensor) {
    auto tensor = torch_tensor(graph_, items, limits_);
    if (!tensor)
      return tensor.error().code == Errc::corrupt ? wrong(tensor.error().what)
                                                  : refused(tensor.error().what);
    graph_.tensors.push_back(std::move(*tensor));
    return push({.kind = PickleKind::tensor,
                 .number = static_cast<std::int64_t>(graph_.tensors.size()) - 1});
  }
  if (name == rebuild_parameter && !items.empty() &&
      graph_.at(items[0]).kind == PickleKind::tensor) {
    stack_.push_back(items[0]);
    return {};
  }
  // A member of an enumeration is getattr(class, name).
  const bool member = name.ends_with(".getattr") && items.size() == 2 &&
                      graph_.at(items[0]).kind == PickleKind::global;
  graph_.foreign.insert(member ? graph_.at(items[0]).text : name);
  if (graph_.foreign.size() > limits_.foreign)
    return refused(cat("more than ", limits_.foreign, " classes"));
  PickleNode record{.kind = PickleKind::record};
  record.text = name;
  RETURN_IF_ERROR(push(std::move(record)));
  return attach(stack_.back(), {callable, arguments}, false);
}

Result<bool> Unpickler::push_constant(std::uint8_t opcode) {
  const auto integer = [&](std::int64_t value) {
    return push({.kind = PickleKind::integer, .number = value});
  };
  const auto boolean = [&](bool value) {
    return push({.kind = PickleKind::boolean, .number = value});
  };
  Result<> pushed;
  if (opcode == op::none) {
    pushed = push({});
  } else if (opcode == op::new_true || opcode == op::new_false) {
    pushed = boolean(opcode == op::new_true);
  } else if (opcode == op::bin_int1 || opcode == op::bin_int2 || opcode == op::bin_int) {
    const auto value = number(opcode == op::bin_int1 ? 1 : opcode == op::bin_int2 ? 2 : 4);
    RETURN_IF_ERROR(value);
    pushed = integer(opcode == op::bin_int ? static_cast<std::int32_t>(*value)
                                           : static_cast<std::int64_t>(*value));
  } else if (opcode == op::long1 || opcode == op::long4) {
    const auto bytes = number(opcode == op::long1 ? 1 : 4);
    RETURN_IF_ERROR(bytes);
    pushed = push_long(*bytes);
  } else if (opcode == op::bin_float) {
    const auto raw = number(8);  // big-endian
    RETURN_IF_ERROR(raw);
    pushed =
        push({.kind = PickleKind::real, .real = std::bit_cast<double>(__builtin_bswap64(*raw))});
  } else {
    return false;
  }
  RETURN_IF_ERROR(pushed);
  return true;
}

Result<bool> Unpickler::push_text(std::uint8_t opcode) {
  Result<> pushed;
  switch (opcode) {
    case op::short_bin_unicode:
      pushed = push_counted(1, PickleKind::text);
      break;
    case op::bin_unicode:
      pushed = push_counted(4, PickleKind::text);
      break;
    case op::bin_unicode8:
      pushed = push_counted(8, PickleKind::text);
      break;
    // Texts of Python 2, as old versions of torch wrote them.
    case op::short_bin_string:
      pushed = push_counted(1, PickleKind::text);
      break;
    case op::bin_string:
      pushed = push_counted(4, PickleKind::text);
      break;
    case op::short_bin_bytes:
      pushed = push_counted(1, PickleKind::bytes);
      break;
    case op::bin_bytes:
      pushed = push_counted(4, PickleKind::bytes);
      break;
    case op::bin_bytes8:
    case op::bytearray8:
      pushed = push_counted(8, PickleKind::bytes);
      break;
    default:
      return false;
  }
  RETURN_IF_ERROR(pushed);
  return true;
}

Result<> Unpickler::check_protocol() {
  const auto version = number(1);
  RETURN_IF_ERROR(version);
  if (*version >= 2 && *version <= 5) return {};
  return refused(cat("protocol ", *version, "; expected 2 to 5"));
}

Result<bool> Unpickler::change_stack(std::uint8_t opcode) {
  switch (opcode) {
    case op::proto:
      RETURN_IF_ERROR(check_protocol());
      return true;
    case op::frame: {
      const auto bytes = number(8);
      RETURN_IF_ERROR(bytes);
      if (*bytes > pickle_.size() - at_) return wrong("a frame reaches beyond the pickle");
      return true;
    }
    case op::stop: {
      const auto root = pop();
      RETURN_IF_ERROR(root);
      graph_.root = *root;
      stopped_ = true;
      return true;
    }
    case op::mark:
      marks_.push_back(stack_.size());
      return true;
    case op::pop:
      RETURN_IF_ERROR(pop());
      return true;
    case op::pop_mark:
      RETURN_IF_ERROR(pop_to_mark());
      return true;
    case op::dup: {
      const auto id = top();
      RETURN_IF_ERROR(id);
      stack_.push_back(*id);
      return true;
    }
    default:
      return false;
  }
}

Result<bool> Unpickler::use_memo(std::uint8_t opcode) {
  if (opcode == op::memoize) {
    RETURN_IF_ERROR(remember(memo_.size()));
    return true;
  }
  const bool one = opcode == op::bin_put || opcode == op::bin_get;
  if (!one && opcode != op::long_bin_put && opcode != op::long_bin_get) return false;
  const auto index = number(one ? 1 : 4);
  RETURN_IF_ERROR(index);
  const bool put = opcode == op::bin_put || opcode == op::long_bin_put;
  RETURN_IF_ERROR(put ? remember(*index) : recall(*index));
  return true;
}

Result<bool> Unpickler::make_container(std::uint8_t opcode) {
  Items items;
  PickleKind kind = PickleKind::tuple;
  if (opcode == op::empty_list || opcode == op::empty_set) {
    kind = PickleKind::list;
  } else if (opcode == op::empty_dict) {
    kind = PickleKind::dict;
  } else if (opcode == op::tuple || opcode == op::frozenset) {
    auto marked = pop_to_mark();
    RETURN_IF_ERROR(marked);
    items = std::move(*marked);
    if (opcode == op::frozenset) kind = PickleKind::list;
  } else if (opcode >= op::tuple1 && opcode <= op::tuple3) {
    auto popped = pop_several(opcode - op::tuple1 + 1);
    RETURN_IF_ERROR(popped);
    items = std::move(*popped);
  } else if (opcode != op::empty_tuple) {
    return false;
  }
  RETURN_IF_ERROR(push({.kind = kind}));
  RETURN_IF_ERROR(attach(stack_.back(), items, false));
  return true;
}

Result<bool> Unpickler::fill_container(std::uint8_t opcode) {
  const bool pairs = opcode == op::set_item || opcode == op::set_items;
  const bool marked = opcode == op::set_items || opcode == op::appends || opcode == op::add_items;
  if (!pairs && !marked && opcode != op::append) return false;
  const auto items = marked ? pop_to_mark() : pop_several(pairs ? 2 : 1);
  RETURN_IF_ERROR(items);
  const auto parent = top();
  RETURN_IF_ERROR(parent);
  const PickleKind kind = graph_.at(*parent).kind;
  // A foreign object may stand in for a list or a dict: its items are kept with it.
  if (kind != PickleKind::record && kind != (pairs ? PickleKind::dict : PickleKind::list))
    return wrong(cat("items for a ", to_string(kind)));
  RETURN_IF_ERROR(attach(*parent, *items, pairs));
  return true;
}

Result<bool> Unpickler::make_object(std::uint8_t opcode) {
  if (opcode == op::global) {
    const auto module = line();
    RETURN_IF_ERROR(module);
    const auto name = line();
    RETURN_IF_ERROR(name);
    if (!valid_utf8(*module) || !valid_utf8(*name)) return wrong("a name that is not UTF-8");
    RETURN_IF_ERROR(push_global(std::string(*module), *name));
    return true;
  }
  const bool three = opcode == op::new_obj_ex, one = opcode == op::bin_pers_id;
  if (!three && !one && opcode != op::stack_global && opcode != op::reduce &&
      opcode != op::new_obj && opcode != op::build)
    return false;
  const auto items = pop_several(three ? 3 : one ? 1 : 2);
  RETURN_IF_ERROR(items);
  RETURN_IF_ERROR(apply(opcode, *items));
  return true;
}

Result<> Unpickler::apply(std::uint8_t opcode, const Items& items) {
  if (opcode == op::stack_global) {
    const PickleNode &module = graph_.at(items[0]), &name = graph_.at(items[1]);
    if (module.kind != PickleKind::text || name.kind != PickleKind::text)
      return wrong("a class whose name is no text");
    return push_global(module.text, name.text);
  }
  if (opcode == op::bin_pers_id) {
    auto storage = torch_storage(graph_, items[0]);
    if (!storage)
      return storage.error().code == Errc::corrupt ? wrong(storage.error().what)
                                                   : refused(storage.error().what);
    return push(std::move(*storage));
  }
  if (opcode == op::build) {
    stack_.push_back(items[0]);
    // Attributes of a dict (_metadata of a state_dict) and of a tensor are not weights.
    if (graph_.at(items[0]).kind != PickleKind::record) return {};
    return attach(items[0], {items[1]}, false);
  }
  RETURN_IF_ERROR(call(items[0], items[1]));
  if (items.size() < 3 || graph_.at(stack_.back()).kind != PickleKind::record) return {};
  return attach(stack_.back(), {items[2]}, false);
}

Result<> Unpickler::step(std::uint8_t opcode) {
  for (const auto group :
       {&Unpickler::push_constant, &Unpickler::push_text, &Unpickler::change_stack,
        &Unpickler::use_memo, &Unpickler::make_container, &Unpickler::fill_container,
        &Unpickler::make_object}) {
    const auto done = (this->*group)(opcode);
    RETURN_IF_ERROR(done);
    if (*done) return {};
  }
  return refused(cat("opcode ", hex_escape(opcode), ", which torch.save does not write"));
}

Result<PickleGraph> Unpickler::run() {
  while (!stopped_) {
    opcode_at_ = at_;
    const auto opcode = number(1);
    if (!opcode) return wrong("the pickle is truncated: expected the STOP opcode");
    RETURN_IF_ERROR(step(static_cast<std::uint8_t>(*opcode)));
    if (stack_.size() > limits_.nodes || marks_.size() > limits_.nodes)
      return refused(cat("more than ", limits_.nodes, " values on the stack"));
  }
  return std::move(graph_);
}

}  // namespace troupe::engine::checkpoint
