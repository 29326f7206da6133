// Killed between any two operations of the writing thread: no row that was acknowledged is missing,
// and the ledger can be continued.
#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/engine/ledger/ledger_fixture.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::ledger {
namespace {

class LedgerCrash : public LedgerTest {
 protected:
  // Three groups of rows, the last of which removes a segment; in a process that kills itself
  // before operation `last`. True if it was killed.
  bool run_until(int last) const {
    const pid_t child = ::fork();
    if (child == 0) {
      int done = 0;
      LedgerOptions options;
      options.before = [&](std::string_view) -> Result<> {
        if (done++ == last) ::kill(::getpid(), SIGKILL);
        return {};
      };
      auto ledger = value_or_throw(open(acknowledged(), options));
      for (int group = 0; group < 3; ++group) {
        const std::int64_t segment = ledger->segment();
        append_samples(*ledger, 10 * group + 1, 3);
        ledger->start_segment();
        if (group > 0) value_or_throw(ledger->remove_segment(segment));
        const Anchor anchor = value_or_throw(ledger->anchor());
        value_or_throw(
            write_file_durably(path("acknowledged"), cat(anchor.length, ' ', anchor.head)));
      }
      ::_exit(0);  // without closing the database
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
  }
  std::optional<Anchor> acknowledged() const {
    std::ifstream file(path("acknowledged"));
    Anchor anchor;
    return file >> anchor.length >> anchor.head ? std::optional(anchor) : std::nullopt;
  }
  void expect_whole() {
    auto ledger = open(acknowledged());
    ASSERT_TRUE(ledger) << ledger.error().what;
    append_samples(**ledger, 100, 2);
    auto db = database();
    auto rows = value_or_throw(
        db.prepare("SELECT segment, \"offset\", bytes, hash FROM events e WHERE bytes IS NOT NULL "
                   "AND NOT EXISTS (SELECT 1 FROM events r WHERE r.kind = 'removed' AND r.segment "
                   "= e.segment)"));
    while (value_or_throw(rows.next())) {
      const auto file = value_or_throw(read_file(path("ledger/" + segment_name(rows.integer(0)))));
      EXPECT_EQ(payload_hash(file.substr(static_cast<std::size_t>(rows.integer(1)),
                                         static_cast<std::size_t>(rows.integer(2)))),
                rows.text(3));
    }
  }
};

TEST_F(LedgerCrash, AtAnyOperationNoAcknowledgedRowIsLost) {
  if (test::sanitized) GTEST_SKIP() << "a child with threads is killed";
  int killed = 0;
  for (; run_until(killed) && !HasFailure(); ++killed) {
    SCOPED_TRACE(cat("killed before operation ", killed));
    expect_whole();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  EXPECT_GE(killed, 30);
  expect_whole();
}

}  // namespace
}  // namespace troupe::engine::ledger
