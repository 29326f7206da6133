#include "engine/checkpoint/pickle/torch_file.h"

#include <gmock/gmock.h>

#include "tests/engine/checkpoint/pickle/pickles.h"

namespace troupe::engine::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string tensor_pickle(const std::string& rest) {
  return cat(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n(",
      pickled_storage("ShortStorage", "0", 6), rest, "tR.");
}
const std::string six = raw("\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00");

std::vector<std::int16_t> values_of(const TorchFile& file) {
  std::vector<std::byte> buffer;
  const auto bytes = value_or_throw(file.bytes(file.tensor(file.root()), buffer));
  std::vector<std::int16_t> out(bytes.size() / 2);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(TorchFile, ReadsViewsOfAStorage) {
  const Scratch scratch;
  put_torch_file(scratch / "a.pt", tensor_pickle(raw("K\x00K\x06\x85K\x01\x85")), six);
  EXPECT_THAT(values_of(value_or_throw(TorchFile::open(scratch / "a.pt"))),
              ElementsAre(0, 1, 2, 3, 4, 5));
  put_torch_file(scratch / "transposed.pt", tensor_pickle(raw("K\x00K\x03K\x02\x86K\x01K\x03\x86")),
                 six);
  EXPECT_THAT(values_of(value_or_throw(TorchFile::open(scratch / "transposed.pt"))),
              ElementsAre(0, 3, 1, 4, 2, 5));
  put_torch_file(scratch / "part.pt", tensor_pickle(raw("K\x01K\x02\x85K\x02\x85")), six);
  EXPECT_THAT(values_of(value_or_throw(TorchFile::open(scratch / "part.pt"))), ElementsAre(1, 3));
  put_torch_file(scratch / "empty.pt", tensor_pickle(raw("K\x06K\x00\x85K\x01\x85")), six);
  EXPECT_TRUE(values_of(value_or_throw(TorchFile::open(scratch / "empty.pt"))).empty());
}

TEST(TorchFile, RefusesOtherFiles) {
  const Scratch scratch;
  const auto what = [&](std::string_view content) {
    put(scratch / "x.pt", content);
    const auto file = TorchFile::open(scratch / "x.pt");
    return file ? std::string("read") : file.error().what;
  };
  EXPECT_THAT(what(""), HasSubstr("expected a zip archive"));
  EXPECT_THAT(what("\x80\x02}."), HasSubstr("expected a zip archive"));
  EXPECT_THAT(what("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
              HasSubstr("the format before it"));
  put_torch_file(scratch / "y.pt", tensor_pickle(raw("K\x00K\x06\x85K\x01\x85")), six.substr(2));
  EXPECT_THAT(TorchFile::open(scratch / "y.pt").error().what,
              HasSubstr("expected 12 bytes, found 10"));
  auto zip = value_or_throw(ZipWriter::create(scratch / "z.pt"));
  value_or_throw(zip.add("x/data.pkl", span_of(tensor_pickle(raw("K\x00K\x06\x85K\x01\x85")))));
  value_or_throw(zip.finish());
  EXPECT_THAT(TorchFile::open(scratch / "z.pt").error().what, HasSubstr("no entry \"x/data/0\""));
}

TEST(TorchFile, FindsDamage) {
  const Scratch scratch;
  put_torch_file(scratch / "a.pt", tensor_pickle(raw("K\x00K\x06\x85K\x01\x85")), six);
  const std::string whole = slurp(scratch / "a.pt");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(scratch / "cut.pt", whole.substr(0, length));
    EXPECT_FALSE(TorchFile::open(scratch / "cut.pt")) << length;
  }
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    put(scratch / "changed.pt", changed);
    const auto file = TorchFile::open(scratch / "changed.pt");
    if (!file) continue;
    std::vector<std::byte> buffer;
    if (!file->bytes(file->tensor(file->root()), buffer)) continue;
    EXPECT_THAT(values_of(*file), ElementsAre(0, 1, 2, 3, 4, 5)) << at;
    ++accepted;
  }
  EXPECT_LT(accepted, whole.size()) << "versions, dates and padding are not compared";
}

TEST(TorchWriter, StoragesAreAlignedAndReadBack) {
  const Scratch scratch;
  PickleValue::Dict state{.ordered = true};
  state.items.emplace_back("a", TensorSlot{StoredType::i16, {2, 3}});
  state.items.emplace_back("b", TensorSlot{StoredType::i16, {6}});
  auto writer = value_or_throw(TorchWriter::create(scratch / "w.pt", std::move(state)));
  for (int i = 0; i < 2; ++i) value_or_throw(writer.write(span_of(six)));
  value_or_throw(writer.finish());
  const auto zip = value_or_throw(ZipFile::open(scratch / "w.pt"));
  for (const ZipEntry& entry : zip.entries()) EXPECT_EQ(entry.begin % 64, 0u) << entry.name;
  const auto file = value_or_throw(TorchFile::open(scratch / "w.pt"));
  const PickleNode* node = file.graph().find(file.root(), "b");
  ASSERT_NE(node, nullptr);
  std::vector<std::byte> buffer;
  const auto bytes = value_or_throw(file.bytes(file.tensor(*node), buffer));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), six);
}

// Debian's python3-torch, where it is installed (cmake/install_packages.sh with-peers).
class WithTorch : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/lib/python3/dist-packages/torch"))
      GTEST_SKIP() << "python3-torch is not installed";
  }
  int run(const std::string& program) {
    put(scratch_ / "program.py", program);
    return std::system(cat("cd ", scratch_.path(), " && /usr/bin/python3 program.py").c_str());
  }
  Scratch scratch_;
};

TEST_F(WithTorch, TorchReadsWhatIsWritten) {
  PickleValue::Dict state{.ordered = true};
  state.items.emplace_back("a", TensorSlot{StoredType::i16, {2, 3}});
  state.items.emplace_back("b", TensorSlot{StoredType::bf16, {6}});
  state.items.emplace_back("scalar", TensorSlot{StoredType::i16, {}});
  PickleValue::Dict root;
  root.items.emplace_back("model", std::move(state));
  root.items.emplace_back("iteration", 1);
  root.items.emplace_back(
      "rest", PickleValue::List{PickleValue(), true, false, -3, std::int64_t{1} << 40, "text",
                                PickleValue::Tuple{{1, 2}}, PickleValue::List{}});
  auto writer = value_or_throw(TorchWriter::create(scratch_ / "w.pt", std::move(root)));
  value_or_throw(writer.write(span_of(six)));
  value_or_throw(writer.write(span_of(six)));
  value_or_throw(writer.write(span_of(six.substr(10))));
  value_or_throw(writer.finish());
  EXPECT_EQ(run("import torch, collections\n"
                "x = torch.load('w.pt', weights_only=True)\n"
                "assert type(x['model']) is collections.OrderedDict\n"
                "assert x['model']['a'].tolist() == [[0, 1, 2], [3, 4, 5]]\n"
                "assert x['model']['b'].dtype == torch.bfloat16\n"
                "assert x['model']['scalar'].shape == () and x['model']['scalar'].item() == 5\n"
                "assert x['iteration'] == 1\n"
                "assert x['rest'] == [None, True, False, -3, 2**40, 'text', (1, 2), []]\n"),
            0);
}

TEST_F(WithTorch, FilesOfTorchAreRead) {
  ASSERT_EQ(run("import torch, argparse, enum, random, numpy\n"
                "class Kind(enum.Enum):\n  a = 1\n"
                "w = torch.arange(6, dtype=torch.int16).reshape(2, 3)\n"
                "torch.save({'args': argparse.Namespace(lr=0.5, kind=Kind.a, dtype=torch.float16),"
                "'rng_state': [{'np': numpy.random.get_state(), 'py': random.getstate()}],"
                "'model': {'w': w, 't': w.t(), 'p': torch.nn.Parameter(w.float())}}, 't.pt')\n"),
            0);
  const auto file = value_or_throw(TorchFile::open(scratch_ / "t.pt"));
  EXPECT_TRUE(file.graph().foreign.contains("argparse.Namespace"));
  const PickleNode* model = file.graph().find(file.root(), "model");
  ASSERT_NE(model, nullptr);
  std::vector<std::byte> buffer;
  const auto bytes =
      value_or_throw(file.bytes(file.tensor(*file.graph().find(*model, "t")), buffer));
  std::vector<std::int16_t> values(6);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_THAT(values, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(file.graph().find(*model, "p")->kind, PickleKind::tensor);
}

}  // namespace
}  // namespace troupe::engine::checkpoint
