#include "engine/checkpoint/pickle/pickle_graph.h"

#include <gmock/gmock.h>

#include "engine/checkpoint/pickle/pickle_value.h"
#include "tests/engine/checkpoint/pickle/pickles.h"

namespace troupe::engine::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PickleGraph read(std::string_view pickle) {
  return value_or_throw(read_pickle(span_of(pickle), "x"));
}

// Made by CPython 3.11: pickle.dumps({'a': [1, -2, 70000, 2**40, None, True, 1.5], 'b': ('x',
// b'y')}, P).
TEST(PickleGraph, ReadsWhatPythonWrites) {
  const std::string protocol_2 =
      raw("\x80\x02}q\x00(X\x01\x00\x00\x00"
          "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00"
          "\x8a\x06\x00\x00\x00\x00\x00\x01N\x88G?\xf8\x00\x00\x00\x00\x00\x00"
          "eX\x01\x00\x00\x00"
          "bq\x03X\x01\x00\x00\x00xq\x04"
          "c_codecs\nencode\nq\x05X\x01\x00\x00\x00yq\x06X\x06\x00"
          "\x00\x00latin1q\x07\x86q\x08Rq\t\x86q\nu.");
  const PickleGraph graph = read(protocol_2);
  ASSERT_EQ(graph.root < graph.nodes.size(), true);
  const PickleNode* list = graph.find(graph.at(graph.root), "a");
  ASSERT_NE(list, nullptr);
  std::vector<std::int64_t> integers;
  for (const PickleId id : list->items) integers.push_back(graph.at(id).number);
  EXPECT_THAT(integers, ElementsAre(1, -2, 70000, std::int64_t{1} << 40, 0, 1, 0));
  EXPECT_EQ(graph.at(list->items[6]).real, 1.5);
  EXPECT_THAT(graph.foreign, ElementsAre("_codecs.encode"));
}

TEST(PickleGraph, ReadsFramesAndMemoizedValuesOfProtocol4) {
  const PickleGraph graph =
      read(raw("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
               "a\x94h\x00s\x8c\x01"
               "bh\x01s."));
  const PickleNode& root = graph.at(graph.root);
  ASSERT_EQ(root.items.size(), 4u);
  EXPECT_EQ(root.items[1], graph.root) << "a dict that contains itself";
  EXPECT_EQ(graph.at(root.items[3]).text, "a");
}

TEST(PickleGraph, ForeignClassesBecomeRecords) {
  const PickleGraph graph =
      read(cat("\x80\x02"
               "cargparse\nNamespace\n)\x81}",
               pickled("lr"), "K\x03sb."));
  const PickleNode& root = graph.at(graph.root);
  EXPECT_EQ(root.kind, PickleKind::record);
  EXPECT_EQ(root.text, "argparse.Namespace");
  ASSERT_EQ(root.items.size(), 3u);
  EXPECT_EQ(graph.find(graph.at(root.items[2]), "lr")->number, 3);
  EXPECT_THAT(graph.foreign, ElementsAre("argparse.Namespace"));
}

TEST(PickleGraph, NothingIsCalled) {
  const Scratch scratch;
  const std::string made = scratch / "made";
  const PickleGraph graph =
      read(cat("\x80\x02"
               "cposix\nsystem\n",
               pickled(cat("touch ", made)), "\x85R."));
  EXPECT_EQ(graph.at(graph.root).text, "posix.system");
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST(PickleGraph, ReadsTensorsAndParameters) {
  const std::string tensor =
      cat("ctorch._utils\n_rebuild_tensor_v2\n(", pickled_storage("HalfStorage", "7", 12),
          raw("K\x02K\x02K\x03\x86K\x01K\x04\x86\x89"
              "ccollections\n"
              "OrderedDict\n)RtR"));
  const PickleGraph graph = read(cat("\x80\x02", tensor, "."));
  ASSERT_EQ(graph.tensors.size(), 1u);
  EXPECT_EQ(graph.tensors[0].type, StoredType::f16);
  EXPECT_EQ(graph.tensors[0].key, "7");
  EXPECT_THAT(graph.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_FALSE(graph.tensors[0].contiguous());
  const PickleGraph parameter =
      read(cat("\x80\x02"
               "ctorch._utils\n_rebuild_parameter\n",
               tensor,
               "\x88"
               "N\x87R."));
  EXPECT_EQ(parameter.at(parameter.root).kind, PickleKind::tensor);
}

TEST(PickleGraph, ReadsWhatIsWritten) {
  PickleValue::Dict state{.ordered = true};
  state.items.emplace_back("w", TensorSlot{StoredType::bf16, {2, 3}});
  state.items.emplace_back("scalar", TensorSlot{StoredType::f32, {}});
  PickleValue::Dict root;
  root.items.emplace_back("model", std::move(state));
  root.items.emplace_back("iteration", std::int64_t{1} << 40);
  root.items.emplace_back(
      "rest", PickleValue::List{PickleValue(), true, -3, "text", PickleValue::Tuple{{1, 2}}});
  const WrittenPickle written = write_pickle(std::move(root));
  ASSERT_EQ(written.tensors.size(), 2u);
  EXPECT_EQ(written.tensors[0].bytes(), 12u);
  const PickleGraph graph = read(written.bytes);
  const PickleNode& top = graph.at(graph.root);
  EXPECT_EQ(graph.find(top, "iteration")->number, std::int64_t{1} << 40);
  EXPECT_EQ(graph.find(top, "rest")->items.size(), 5u);
  ASSERT_EQ(graph.tensors.size(), 2u);
  EXPECT_THAT(graph.tensors[0].strides, ElementsAre(3, 1));
  EXPECT_TRUE(graph.foreign.empty());
}

TEST(PickleGraph, RefusesMoreThanTheLimits) {
  const auto what = [](std::string_view pickle, const PickleLimits& limits) {
    return read_pickle(span_of(pickle), "x", limits).error().what;
  };
  EXPECT_THAT(what("\x80\x02NNN.", {.nodes = 2}), HasSubstr("more than 2 values"));
  EXPECT_THAT(what("\x80\x02]]]aa.", {.depth = 1}), HasSubstr("more than 1 levels"));
  EXPECT_THAT(what("\x80\x02N.", {.bytes = 3}), HasSubstr("a pickle of 4 bytes"));
  EXPECT_THAT(what("\x80\x02"
                   "ca\nb\n)Rca\nc\n)R.",
                   {.foreign = 1}),
              HasSubstr("1 classes"));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
