// Tables, texts and compressed files that are damaged or swell.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace reader_files {
namespace {

auto file(std::string name, std::string text) {
  return [name = std::move(name), text = std::move(text)](const Folder& folder) {
    folder.write(name, text);
  };
}

// gzip's header, then one block of deflate whose codes make every zero bit behind it a match of 258
// letters: a byte becomes 1032.
const std::string swelling(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed\xc0\x81\x00\x00\x00\x00\x80\x20\xed\xf1\x17\xa9"
    "\x00",
    24);

auto arrow(void (*damage)(const Folder&)) {
  return [damage](const Folder& folder) {
    damage(folder.copy("formats/arrow/gsm8k_train_head.arrow", "rows.arrow"));
  };
}

const std::string many_quotes(1'000'000, '"');

const std::vector<Case> cases = {
    {"PackedGarbage", file("rows.jsonl.gz", "\x1f\x8bgarbage garbage"), "info @/rows.jsonl.gz", 5,
     "@/rows.jsonl.gz: expected text compressed by gzip, found damage near byte "},
    {"PackedCut",
     [](const Folder& f) {
       f.copy("datasets/eval/HumanEval_head.jsonl.gz", "rows.jsonl.gz").cut("rows.jsonl.gz", -20);
     },
     "info @/rows.jsonl.gz", 5,
     "@/rows.jsonl.gz: expected text compressed by gzip, found its end in the middle: the file is "
     "truncated"},
    {"PackedWithAWrongSum",
     [](const Folder& f) {
       f.copy("datasets/eval/HumanEval_head.jsonl.gz", "rows.jsonl.gz")
           .patch("rows.jsonl.gz", -8, "xxxx");
     },
     "info @/rows.jsonl.gz", 5,
     "@/rows.jsonl.gz: expected text compressed by gzip, found damage near byte "},
    {"PackedAndSwelling",
     [](const Folder& f) {
       f.repeat("rows.jsonl.gz", swelling, std::string(1024, '\0'), 1024, "");
     },
     "info @/rows.jsonl.gz", 5,
     "beyond 300 to 1, which rows of data are not; unpack it first (gunzip) if that is meant"},
    {"PackedListAndSwelling",
     [](const Folder& f) { f.repeat("rows.json.gz", swelling, std::string(1024, '\0'), 1024, ""); },
     "info @/rows.json.gz", 5, "@/rows.json.gz:"},
    {"PackedTableAndSwelling",
     [](const Folder& f) { f.repeat("rows.csv.gz", swelling, std::string(1024, '\0'), 1024, ""); },
     "info @/rows.csv.gz", 5, "@/rows.csv.gz:"},
    {"TableWithAnOpenQuote", file("rows.csv", "prompt,response\n\"a,b\nc,d\n"), "info @/rows.csv",
     5,
     "@/rows.csv:2: the row that begins here does not end before the file does: a quotation mark "
     "is opened and not closed"},
    {"TableOfQuotes", file("rows.csv", "a,b\n" + many_quotes), "info @/rows.csv", 3,
     "@/rows.csv:2"},
    {"TableWithAnOpenQuoteOf50Megabytes",
     [](const Folder& f) {
       f.repeat("rows.csv", "prompt,response\n\"", std::string(1024, 'x'), 50 * 1024, "");
     },
     "info @/rows.csv", 5, "@/rows.csv:2: the row that begins here does not end within 8 MiB"},
    {"TableWithACellTooMany", file("rows.csv", "prompt,response\na,b,c\n"), "info @/rows.csv", 3,
     "@/rows.csv:2: expected 2 columns (\"prompt\", \"response\"), found 3"},
    {"TableWithAColumnTwice", file("rows.csv", "a,a\n1,2\n"), "info @/rows.csv", 5,
     "@/rows.csv:1: two columns are called \"a\" in the header"},
    {"TableOfManyColumns", file("rows.csv", std::string(10'000, ',') + "\n"), "info @/rows.csv", 5,
     "@/rows.csv:1: expected at most 4096 columns"},
    {"TableNotUtf8", file("rows.csv", "prompt,response\n\xe4,b\n"), "info @/rows.csv", 3,
     "@/rows.csv:2: column \"prompt\": expected UTF-8 text, found another byte at offset 0"},
    {"TextNotOfUtf8", file("rows.txt", "a\n\xff\n"), "info @/rows.txt", 3,
     "@/rows.txt:2: expected UTF-8 text"},
    {"TextOf100MegabytesInALine",
     [](const Folder& f) { f.repeat("rows.txt", "", std::string(1024, 'x'), 100 * 1024, ""); },
     "info @/rows.txt", 3, "@/rows.txt:1: expected a row of at most 8 MiB"},
    {"ArrowOfEightBytes", file("rows.arrow", std::string("ARROW1\0\0", 8)), "info @/rows.arrow", 5,
     "@/rows.arrow: expected a whole Arrow IPC file or stream, found: "},
    {"ArrowOfText", file("rows.arrow", "a,b\n"), "info @/rows.arrow", 5,
     "@/rows.arrow: expected an Arrow IPC file (ARROW1 at its start)"},
    {"ArrowCut", arrow([](const Folder& f) { f.cut("rows.arrow", -500); }), "info @/rows.arrow", 5,
     "@/rows.arrow: expected a whole Arrow IPC file or stream, found: "},
    {"ArrowWithALyingLength",
     arrow([](const Folder& f) { f.patch("rows.arrow", 4, "\xff\xff\xff\x7f"); }),
     "info @/rows.arrow", 5, "@/rows.arrow: expected a whole Arrow IPC file or stream, found: "},
    {"ArrowWithADamagedHead",
     arrow([](const Folder& f) { f.patch("rows.arrow", 16, std::string(64, '\xff')); }),
     "info @/rows.arrow", 5, "@/rows.arrow: expected a whole Arrow IPC file or stream, found: "},
    {"ZstdOfRows", file("rows.jsonl", "\x28\xb5\x2f\xfdxxxx"), "info @/rows.jsonl", 6,
     "@/rows.jsonl: compressed by zstd; unpack it first (unzstd)"},
    {"PatternOfNothing", [](const Folder&) {}, "info '@/*.jsonl'", 4,
     "@/*.jsonl: no data file fits this pattern"},
    {"DataSetOfLyingNames",
     [](const Folder& f) {
       f.directory("set")
           .write("set/state.json", R"({"_data_files":[{"filename":"../../../etc/passwd"}]})")
           .write("set/dataset_info.json", "{}");
     },
     "info @/set", 5,
     "@/set/state.json: expected {\"filename\": a file beside it} in \"_data_files\""},
};

}  // namespace
}  // namespace reader_files

const std::vector<Case>& reader_cases() {
  return reader_files::cases;
}

}  // namespace troupe::hostile
