#include "engine/data/readers/arrow_json.h"

#include <arrow/util/float16.h>

#include <algorithm>
#include <set>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

using arrow::Type;

// Arrow's canonical type of JSON text (arrow.apache.org/docs/format/CanonicalExtensions.html#json),
// in which datasets writes members of different types. Libraries that do not register the type give
// its storage, with the name in the field's metadata.
constexpr std::string_view json_extension = "arrow.json";

bool is_json(const arrow::Field& field) {
  if (field.type()->id() == Type::EXTENSION) return true;  // others are refused with the schema
  if (!field.metadata()) return false;
  const auto name = field.metadata()->Get("ARROW:extension:name");
  return name.ok() && *name == json_extension;
}

template <class A>
const A& as(const arrow::Array& array) {
  return static_cast<const A&>(array);
}

Result<> check_type(const arrow::DataType& type, const std::string& column, std::size_t depth) {
  if (depth > max_row_depth)
    return fail(Errc::unsupported, cat(column, ": nested deeper than ", max_row_depth, " levels"));
  switch (type.id()) {
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::LIST_VIEW:
    case Type::LARGE_LIST_VIEW:
    case Type::MAP:
    case Type::STRUCT: {
      std::set<std::string> names;
      for (const auto& field : type.fields()) {
        if (!names.insert(field->name()).second)
          return fail(Errc::unsupported,
                      cat(column, ": two members are called ", quote(field->name())));
        RETURN_IF_ERROR(check_type(*field->type(), column, depth + 1));
      }
      return {};
    }
    case Type::DICTIONARY:
      return check_type(*static_cast<const arrow::DictionaryType&>(type).value_type(), column,
                        depth + 1);
    case Type::EXTENSION:
      if (const auto& extension = static_cast<const arrow::ExtensionType&>(type);
          extension.extension_name() == json_extension)
        return check_type(*extension.storage_type(), column, depth + 1);
      [[fallthrough]];
    case Type::SPARSE_UNION:
    case Type::DENSE_UNION:
    case Type::RUN_END_ENCODED:
      return fail(Errc::unsupported, cat(column, ": columns of type ", type.ToString(),
                                         " are not read; leave it out or convert it"));
    default:
      return {};
  }
}

Result<> spend(std::size_t& budget, std::size_t bytes) {
  if (bytes > budget)
    return fail(Errc::bad_input, cat("the row is larger than ", max_row_bytes >> 20, " MiB"));
  budget -= bytes;
  return {};
}

Result<Json> text_json(std::string_view text, std::size_t& budget) {
  RETURN_IF_ERROR(spend(budget, text.size()));
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad))
    return fail(Errc::bad_input, cat("expected UTF-8 text, found another byte at offset ", bad));
  return Json(text);
}

Result<Json> list_json(const arrow::Array& values, const arrow::Field& field, std::int64_t begin,
                       std::int64_t end, std::size_t& budget) {
  Json::Array items;
  for (auto i = begin; i < end; ++i) {
    RETURN_IF_ERROR(spend(budget, 1));
    auto item = cell_json(values, field, i, budget);
    if (!item) return item;
    items.push_back(std::move(*item));
  }
  return Json(std::move(items));
}

Result<Json> struct_json(const arrow::StructArray& array, std::int64_t i, std::size_t& budget) {
  Json::Object members;
  for (int f = 0; f < array.num_fields(); ++f) {
    auto value = cell_json(*array.field(f), *array.struct_type()->field(f), i, budget);
    if (!value) return value;
    members.emplace_back(array.struct_type()->field(f)->name(), std::move(*value));
  }
  return Json(std::move(members));
}

Result<Json> map_json(const arrow::MapArray& array, std::int64_t i, std::size_t& budget) {
  const auto& type = static_cast<const arrow::MapType&>(*array.type());
  const auto begin = array.value_offset(i), end = array.value_offset(i + 1);
  auto keys = list_json(*array.keys(), *type.key_field(), begin, end, budget);
  if (!keys) return keys;
  auto values = list_json(*array.items(), *type.item_field(), begin, end, budget);
  if (!values) return values;
  Json::Object members;
  Json::Array pairs;
  std::set<std::string> names;
  for (std::size_t k = 0; k < keys->array().size(); ++k) {
    auto& key = keys->array()[k];
    auto& value = values->array()[k];
    if (key.is_string() && names.insert(key.string()).second)
      members.emplace_back(key.string(), value);
    pairs.push_back(Json(Json::Array{std::move(key), std::move(value)}));
  }
  // Objects require string keys, each at most once.
  if (members.size() == pairs.size()) return Json(std::move(members));
  return Json(std::move(pairs));
}

Result<Json> scalar_text(const arrow::Array& array, std::int64_t i, std::size_t& budget) {
  auto scalar = array.GetScalar(i);
  if (!scalar.ok()) return fail(Errc::bad_input, scalar.status().ToString());
  return text_json((*scalar)->ToString(), budget);
}

Json unsigned_json(std::uint64_t value) {
  return value > static_cast<std::uint64_t>(INT64_MAX) ? Json(std::to_string(value)) : Json(value);
}

// JSON has no bytes: converts them to text if they are UTF-8, else to hexadecimal digits, as
// Arrow's own JSON form does.
Result<Json> bytes_json(std::string_view bytes, std::size_t& budget) {
  if (valid_utf8(bytes)) return text_json(bytes, budget);
  RETURN_IF_ERROR(spend(budget, 2 * bytes.size()));
  std::string out;
  for (const unsigned char c : bytes) {
    out += "0123456789ABCDEF"[c >> 4];
    out += "0123456789ABCDEF"[c & 15];
  }
  return Json(std::move(out));
}

template <class List>
Result<Json> list_cell(const List& list, std::int64_t i, std::size_t& budget) {
  return list_json(*list.values(), *list.type()->field(0), list.value_offset(i),
                   list.value_offset(i) + list.value_length(i), budget);
}

// Converts numbers and booleans, and any other scalar (dates, times, decimals) to its text.
Result<Json> number_json(const arrow::Array& array, std::int64_t i, std::size_t& budget) {
  switch (array.type_id()) {
    case Type::BOOL:
      return Json(as<arrow::BooleanArray>(array).Value(i));
    case Type::INT8:
      return Json(std::int64_t{as<arrow::Int8Array>(array).Value(i)});
    case Type::INT16:
      return Json(std::int64_t{as<arrow::Int16Array>(array).Value(i)});
    case Type::INT32:
      return Json(std::int64_t{as<arrow::Int32Array>(array).Value(i)});
    case Type::INT64:
      return Json(std::int64_t{as<arrow::Int64Array>(array).Value(i)});
    case Type::UINT8:
      return Json(std::int64_t{as<arrow::UInt8Array>(array).Value(i)});
    case Type::UINT16:
      return Json(std::int64_t{as<arrow::UInt16Array>(array).Value(i)});
    case Type::UINT32:
      return Json(std::int64_t{as<arrow::UInt32Array>(array).Value(i)});
    case Type::UINT64:
      return unsigned_json(as<arrow::UInt64Array>(array).Value(i));
    case Type::HALF_FLOAT:
      return Json(double{
          arrow::util::Float16::FromBits(as<arrow::HalfFloatArray>(array).Value(i)).ToFloat()});
    case Type::FLOAT:
      return Json(double{as<arrow::FloatArray>(array).Value(i)});
    case Type::DOUBLE:
      return Json(as<arrow::DoubleArray>(array).Value(i));
    default:
      return scalar_text(array, i, budget);
  }
}

}  // namespace

Result<> check_schema(const arrow::Schema& schema, const std::string& where) {
  std::set<std::string> names;
  for (const auto& field : schema.fields()) {
    if (!names.insert(field->name()).second)
      return fail(Errc::unsupported, cat(where, ": two columns are called ", quote(field->name())));
    RETURN_IF_ERROR(check_type(*field->type(), cat(where, ": column ", quote(field->name())), 1));
  }
  return {};
}

namespace {

// A cell whose text, if it is text, stands for itself.
Result<Json> plain_json(const arrow::Array& array, const arrow::Field& field, std::int64_t i,
                        std::size_t& budget) {
  if (array.IsNull(i)) return Json();  // of a dictionary
  switch (array.type_id()) {
    case Type::STRING:
      return text_json(as<arrow::BinaryArray>(array).GetView(i), budget);
    case Type::LARGE_STRING:
      return text_json(as<arrow::LargeBinaryArray>(array).GetView(i), budget);
    case Type::BINARY:
      return bytes_json(as<arrow::BinaryArray>(array).GetView(i), budget);
    case Type::LARGE_BINARY:
      return bytes_json(as<arrow::LargeBinaryArray>(array).GetView(i), budget);
    case Type::STRING_VIEW:
      return text_json(as<arrow::BinaryViewArray>(array).GetView(i), budget);
    case Type::BINARY_VIEW:
      return bytes_json(as<arrow::BinaryViewArray>(array).GetView(i), budget);
    case Type::FIXED_SIZE_BINARY:
      return bytes_json(as<arrow::FixedSizeBinaryArray>(array).GetView(i), budget);
    case Type::MAP:
      return map_json(as<arrow::MapArray>(array), i, budget);
    case Type::LIST:
      return list_cell(as<arrow::ListArray>(array), i, budget);
    case Type::LARGE_LIST:
      return list_cell(as<arrow::LargeListArray>(array), i, budget);
    case Type::FIXED_SIZE_LIST:
      return list_cell(as<arrow::FixedSizeListArray>(array), i, budget);
    case Type::LIST_VIEW:
      return list_cell(as<arrow::ListViewArray>(array), i, budget);
    case Type::LARGE_LIST_VIEW:
      return list_cell(as<arrow::LargeListViewArray>(array), i, budget);
    case Type::STRUCT:
      return struct_json(as<arrow::StructArray>(array), i, budget);
    case Type::DICTIONARY: {
      const auto& coded = as<arrow::DictionaryArray>(array);
      return plain_json(*coded.dictionary(), field, coded.GetValueIndex(i), budget);
    }
    default:
      return number_json(array, i, budget);
  }
}

}  // namespace

Result<Json> cell_json(const arrow::Array& array, const arrow::Field& field, std::int64_t i,
                       std::size_t& budget) {
  if (array.IsNull(i)) return Json();
  if (!is_json(field)) return plain_json(array, field, i, budget);
  const bool extension = array.type_id() == Type::EXTENSION;
  const auto text =
      plain_json(extension ? *as<arrow::ExtensionArray>(array).storage() : array, field, i, budget);
  RETURN_IF_ERROR(text);
  if (!text->is_string())
    return fail(Errc::bad_input, cat(quote(field.name()), ": expected JSON text (the Arrow type ",
                                     json_extension, "), found ", text->type_name()));
  return parse_json(text->string(), cat(quote(field.name()), ", JSON text"),
                    {.depth = max_row_depth, .bytes = max_row_bytes});
}

Result<std::optional<Row>> read_row(const arrow::RecordBatch& batch, std::int64_t first,
                                    const std::string& path, std::int64_t index) {
  Row row{Json(), path, index + 1, index, true};
  Json::Object members;
  std::size_t budget = max_row_bytes;
  for (int c = 0; c < batch.num_columns(); ++c) {
    auto value = cell_json(*batch.column(c), *batch.schema()->field(c), index - first, budget);
    if (!value)
      return fail(Errc::bad_input, cat(row.where(), ": column ", quote(batch.column_name(c)), ": ",
                                       value.error().what));
    members.emplace_back(batch.column_name(c), std::move(*value));
  }
  row.value = Json(std::move(members));
  return row;
}

// The factor is large because columns of one repeated value compress to almost nothing; the memory
// for a small file is nevertheless bounded.
BoundedPool::BoundedPool(std::uint64_t file_bytes)
    : limit_(static_cast<std::int64_t>(std::max<std::uint64_t>(
          128u << 20, 256 * std::min<std::uint64_t>(file_bytes, 1ull << 40)))) {
}

arrow::Status BoundedPool::check(std::int64_t more) const {
  if (more <= limit_ - used_) return arrow::Status::OK();
  return arrow::Status::OutOfMemory("the file asks for ", more,
                                    " bytes at once, more than one of its size can need");
}

arrow::Status BoundedPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  ARROW_RETURN_NOT_OK(check(size));
  ARROW_RETURN_NOT_OK(arrow::default_memory_pool()->Allocate(size, alignment, out));
  used_ += size;
  return arrow::Status::OK();
}

arrow::Status BoundedPool::Reallocate(std::int64_t old_size, std::int64_t new_size,
                                      std::int64_t alignment, std::uint8_t** at) {
  ARROW_RETURN_NOT_OK(check(new_size - old_size));
  ARROW_RETURN_NOT_OK(arrow::default_memory_pool()->Reallocate(old_size, new_size, alignment, at));
  used_ += new_size - old_size;
  return arrow::Status::OK();
}

void BoundedPool::Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) {
  arrow::default_memory_pool()->Free(buffer, size, alignment);
  used_ -= size;
}

}  // namespace troupe::engine::data
