// More than a hundred hostile pickles, each of which ends in an error or an inert record.
#include <gmock/gmock.h>

#include "engine/checkpoint/pickle/pickle_graph.h"
#include "engine/checkpoint/pickle/torch_file.h"
#include "tests/engine/checkpoint/pickle/pickles.h"

namespace troupe::engine::checkpoint {
namespace {

using testing::HasSubstr;

struct HostilePickle {
  std::string name, bytes, says;
};

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

/// Every opcode alone, without what it needs.
std::vector<HostilePickle> lone_opcodes() {
  std::vector<HostilePickle> out;
  for (int code = 0; code < 256; ++code)
    out.push_back({cat("opcode ", code), raw("\x80\x02") + static_cast<char>(code), "x: byte "});
  return out;
}

std::string tensor_of(const std::string& storage, const std::string& rest) {
  return cat(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n(",
      storage, rest, "tR.");
}

std::vector<HostilePickle> bad_tensors() {
  const std::string floats = pickled_storage("FloatStorage", "0", 4);
  return {
      {"beyond the storage", tensor_of(floats, raw("K\x00K\x05\x85K\x01\x85")), "does not fit"},
      {"offset", tensor_of(floats, raw("K\x04K\x01\x85K\x01\x85")), "does not fit"},
      {"stride", tensor_of(floats, raw("K\x00K\x02\x85K\x04\x85")), "does not fit"},
      {"stride 0", tensor_of(floats, raw("K\x00K\xff\x85K\x00\x85")), "does not fit"},
      {"overflow of the shape",
       tensor_of(floats, raw("K\x00\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85K\x02\x85")),
       "does not fit"},
      {"overflow of the count",
       tensor_of(floats, raw("K\x00\x8a\x05\x00\x00\x00\x00\x01\x8a\x05\x00\x00\x00\x00\x01\x86"
                             "K\x00K\x00\x86")),
       "does not fit"},
      {"overflow of the count with an axis of 0",
       tensor_of(floats, raw("K\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x8a\x08\x00\x00\x00"
                             "\x00\x00\x00\x00\x40K\x00\x87K\x01K\x01K\x01\x87")),
       "does not fit"},
      {"an axis of 0 first",
       tensor_of(floats, raw("K\x00K\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x8a\x08\x00\x00"
                             "\x00\x00\x00\x00\x00\x40\x87K\x01K\x01K\x01\x87")),
       "does not fit"},
      {"negative axis", tensor_of(floats, raw("K\x00J\xff\xff\xff\xff\x85K\x01\x85")),
       "non-negative"},
      {"negative stride", tensor_of(floats, raw("K\x00K\x02\x85J\xff\xff\xff\xff\x85")),
       "non-negative"},
      {"negative offset", tensor_of(floats, raw("J\xff\xff\xff\xffK\x02\x85K\x01\x85")),
       "expected (storage, offset"},
      {"fewer strides", tensor_of(floats, raw("K\x00K\x02\x85)")), "does not fit"},
      {"nine axes", tensor_of(floats, "K" + raw("\x00") + "(" + repeated("K\x01", 9) + "t)"),
       "at most 8"},
      {"axes of texts", tensor_of(floats, raw("K\x00") + pickled("a") + "\x85K\x01\x85"),
       "non-negative integers"},
      {"shape that is no tuple", tensor_of(floats, raw("K\x00K\x02)")), "expected a shape"},
      {"no storage", tensor_of("N", raw("K\x00)")), "expected (storage, offset"},
      {"no arguments",
       raw("\x80\x02"
           "ctorch._utils\n_rebuild_tensor_v2\n)R."),
       "expected (storage"},
      {"unknown element type",
       tensor_of(pickled_storage("ComplexFloatStorage", "0", 4), raw("K\x00)")),
       "a tensor of the type \"torch.ComplexFloatStorage\""},
      {"storage of a class of another module",
       raw("\x80\x02(") + pickled("storage") + "cos\nsystem\n" + pickled("0") + "NK\x04tQ.",
       "a tensor of the type \"os.system\""},
      {"storage with a negative size",
       raw("\x80\x02(") + pickled("storage") + "ctorch\nFloatStorage\n" + pickled("0") +
           "NJ\xff\xff\xff\xfftQ.",
       "a storage of -1 elements"},
      {"storage with a huge size",
       raw("\x80\x02(") + pickled("storage") + "ctorch\nFloatStorage\n" + pickled("0") +
           "N\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ftQ.",
       "a storage of 9223372036854775807 elements"},
      {"persistent id that is no tuple", raw("\x80\x02NQ."), "a persistent id"},
      {"short persistent id", raw("\x80\x02") + pickled("storage") + "\x85Q.", "a persistent id"},
      {"module in a persistent id", raw("\x80\x02(") + pickled("module") + "NNNNtQ.",
       "a persistent id"},
  };
}

std::vector<HostilePickle> bad_structure() {
  return {
      {"empty", "", "truncated"},
      {"only a protocol", raw("\x80\x02"), "truncated"},
      {"protocol 0", raw("\x80\x00."), "protocol 0"},
      {"protocol 1", raw("\x80\x01."), "protocol 1"},
      {"protocol 6", raw("\x80\x06."), "protocol 6"},
      {"no STOP", raw("\x80\x02N"), "truncated"},
      {"text beyond the end",
       raw("\x80\x02X\xff\xff\xff\xff"
           "abc."),
       "expected 4294967295 more"},
      {"text of 2^64 bytes",
       raw("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
           "a."),
       "expected 18446744073709551615 more"},
      {"bytes of 2^63 bytes",
       raw("\x80\x04\x8e\x00\x00\x00\x00\x00\x00\x00\x80"
           "a."),
       "expected 9223372036854775808 more"},
      {"bytearray beyond the end",
       raw("\x80\x05\x96\x00\x01\x00\x00\x00\x00\x00\x00"
           "a."),
       "expected 256 more"},
      {"number beyond the end",
       raw("\x80\x02\x8b\xff\xff\xff\x7f"
           "1."),
       "expected 2147483647"},
      {"frame beyond the end", raw("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."), "a frame"},
      {"text that is not UTF-8", raw("\x80\x02X\x01\x00\x00\x00\xff."), "not UTF-8"},
      {"class name that is not UTF-8",
       raw("\x80\x02"
           "c\xff\nb\n."),
       "not UTF-8"},
      {"class name without an end",
       "\x80\x02"
       "c" +
           std::string(5000, 'a'),
       "expected a line"},
      {"class name that is no text", raw("\x80\x04NN\x93."), "whose name is no text"},
      {"memo without a value", raw("\x80\x02h\x05."), "remembered under 5"},
      {"memo far away", raw("\x80\x02j\xff\xff\xff\xff."), "remembered under 4294967295"},
      {"put on an empty stack", raw("\x80\x02q\x00."), "stack is empty"},
      {"put under a mark", raw("\x80\x02N(q\x00."), "stack is empty"},
      {"pop through a mark", raw("\x80\x02N(0."), "stack is empty"},
      {"tuple without a mark", raw("\x80\x02Nt."), "no mark"},
      {"pop mark without a mark", raw("\x80\x02N1."), "no mark"},
      {"append to a number",
       raw("\x80\x02K\x01K\x02"
           "a."),
       "items for a int"},
      {"append to a dict",
       raw("\x80\x02}K\x02"
           "a."),
       "items for a dict"},
      {"item of a list", raw("\x80\x02]K\x01K\x02s."), "items for a list"},
      {"item of a tensor's class",
       raw("\x80\x02"
           "ctorch\nTensor\nNNs."),
       "items for a class"},
      {"odd items", raw("\x80\x02}(K\x01u."), "a key without a value"},
      {"items for nothing", raw("\x80\x02(NNu."), "stack is empty"},
      {"arguments that are a list",
       raw("\x80\x02"
           "ca\nb\n]R."),
       "arguments that are no tuple"},
      {"object of arguments that are text",
       raw("\x80\x02"
           "ca\nb\nN\x81."),
       "no tuple"},
      {"extension registry", raw("\x80\x02\x82\x01."), "opcode \\x82"},
      {"out-of-band buffer", raw("\x80\x05\x97."), "opcode \\x97"},
      {"text of protocol 0",
       raw("\x80\x02V"
           "abc\n."),
       "opcode"},
      {"persistent id of protocol 0",
       raw("\x80\x02P"
           "abc\n."),
       "opcode"},
      {"instance of protocol 0", raw("\x80\x02(ios\nsystem\n."), "opcode"},
      {"object of protocol 1",
       raw("\x80\x02("
           "cos\nsystem\no."),
       "opcode"},
      {"deep lists", "\x80\x02" + repeated("]", 5000) + repeated("a", 4999) + ".", "levels"},
      {"deep tuples", "\x80\x02N" + repeated("\x85", 5000) + ".", "levels"},
      {"deep dicts", "\x80\x02" + repeated("}N", 5000) + repeated("s", 4999) + ".", ""},
      {"deep calls", "\x80\x02" + repeated("ca\nb\n", 400) + "N" + repeated("\x85R", 400) + ".",
       "levels"},
      {"many values", "\x80\x02" + std::string(300000, 'N') + ".", "values"},
      {"many copies", "\x80\x02N" + std::string(300000, '2') + ".", "values"},
      {"many marks", "\x80\x02N" + std::string(300000, '(') + ".", "values"},
  };
}

void expect_error(const HostilePickle& each) {
  const auto graph = read_pickle(span_of(each.bytes), "x", {.nodes = 1u << 18});
  if (graph) {
    ADD_FAILURE() << each.name << ": read";
    return;
  }
  EXPECT_THAT(graph.error().what, HasSubstr(each.says)) << each.name;
  EXPECT_THAT(graph.error().what, HasSubstr("x: ")) << each.name;
}

TEST(HostilePickle, EveryOpcodeAloneIsAnError) {
  for (const auto& each : lone_opcodes()) expect_error(each);
}
TEST(HostilePickle, TensorsOutsideTheirStorage) {
  for (const auto& each : bad_tensors()) expect_error(each);
}
TEST(HostilePickle, BadStructure) {
  for (const auto& each : bad_structure()) expect_error(each);
}

// Functions that attacks use: each stays a name.
TEST(HostilePickle, CallsAreInert) {
  const Scratch scratch;
  const std::string argument = pickled(cat("touch ", scratch / "made"));
  for (const std::string name : {"os\nsystem",
                                 "posix\nsystem",
                                 "builtins\neval",
                                 "builtins\nexec",
                                 "__builtin__\napply",
                                 "subprocess\nPopen",
                                 "subprocess\ncheck_output",
                                 "runpy\nrun_path",
                                 "shutil\nrmtree",
                                 "torch\nload",
                                 "torch.hub\nload",
                                 "builtins\n__import__",
                                 "builtins\ngetattr",
                                 "operator\nattrgetter",
                                 "webbrowser\nopen",
                                 "socket\nsocket",
                                 "pickle\nloads",
                                 "numpy\nload",
                                 "importlib\nimport_module",
                                 "torch.storage\n_load_from_bytes"}) {
    for (const std::string call : {"\x85R", "\x85\x81", "\x85}\x92", "\x85RNb", "\x85RNa"}) {
      const std::string pickle =
          cat("\x80\x02"
              "c",
              name, "\n", argument, call, ".");
      const auto graph = read_pickle(span_of(pickle), "x");
      ASSERT_TRUE(graph) << name << ": " << graph.error().what;
      EXPECT_EQ(graph->at(graph->root).kind, PickleKind::record) << name;
      EXPECT_EQ(graph->foreign.size(), 1u);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

// A billion references cost no more than their bytes.
TEST(HostilePickle, SharedListsAreNotExpanded) {
  std::string pickle = raw("\x80\x02]q\x00");
  for (int i = 0; i < 100; ++i) {
    const char before = static_cast<char>(i), now = static_cast<char>(i + 1);
    pickle += cat("](", repeated(std::string("h") + before, 10), "eq", now);
  }
  const auto graph = read_pickle(span_of(pickle + "."), "x");
  ASSERT_TRUE(graph) << graph.error().what;
  EXPECT_EQ(graph->nodes.size(), 101u);
}

TEST(HostilePickle, EveryTruncationIsAnError) {
  const std::string whole =
      tensor_of(pickled_storage("FloatStorage", "0", 4), raw("K\x00K\x04\x85K\x01\x85"));
  ASSERT_TRUE(read_pickle(span_of(whole), "x"));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(read_pickle(span_of(whole.substr(0, length)), "x")) << length;
}

}  // namespace
}  // namespace troupe::engine::checkpoint
