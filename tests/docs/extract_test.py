"""extract.py over small trees: what it extracts, and what it refuses."""
import os
import tempfile
import unittest

import extract

PAGE = "docs/a.md"
NEW = "The header, `engine/new.h`:\n\n```cpp\nint x;\n\nint y;\n```\n"
EDIT = """2. In `engine/old.h`:

   ```diff
    int a;
   +int b;
   @@
   -int d;
   ```
"""


class Extract(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.put("engine/old.h", "int a;\nint c;\nint d;\n")

    def put(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def files(self, page):
        self.put(PAGE, page)
        return extract.files_of(self.folder.name, PAGE)

    def refused(self, page, names=()):
        self.put(PAGE, page)
        with self.assertRaises(extract.Stale) as caught:
            extract.write(self.folder.name, PAGE, os.path.join(self.folder.name, "into"), list(names))
        return str(caught.exception)

    def test_a_named_block_is_a_file(self):
        self.assertEqual(self.files("# A page\n\n```cpp\nint unnamed;\n```\n" + NEW), {"engine/new.h": "int x;\n\nint y;\n"})

    def test_a_name_belongs_to_the_next_block_alone(self):
        self.assertEqual(list(self.files(NEW + "```cpp\nint z;\n```\nSee `engine/old.h` for\n\n```cpp\nint z;\n```\n")), ["engine/new.h"])

    def test_a_diff_changes_a_file_of_the_tree(self):
        self.assertEqual(self.files(EDIT), {"engine/old.h": "int a;\nint b;\nint c;\n"})

    def test_a_diff_follows_earlier_blocks_of_the_page(self):
        more = "`engine/new.h`:\n```diff\n-int y;\n+int z;\n```\n"
        self.assertEqual(self.files(NEW + more), {"engine/new.h": "int x;\n\nint z;\n"})

    def test_apply_writes_into_the_tree(self):
        self.put(PAGE, NEW + EDIT)
        extract.main(["apply", self.folder.name, PAGE])
        with open(os.path.join(self.folder.name, "engine/old.h"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "int a;\nint b;\nint c;\n")
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "engine/new.h")))

    def test_a_stale_diff_names_the_page_and_the_file(self):
        message = self.refused("`engine/old.h`:\n```diff\n-int e;\n+int b;\n```\n")
        self.assertIn("docs/a.md:2: the diff of engine/old.h does not apply", message)
        self.assertIn("0 times", message)

    def test_a_diff_of_lines_that_stand_twice_is_refused(self):
        self.put("engine/old.h", "int a;\nint a;\n")
        self.assertIn("2 times", self.refused("`engine/old.h`:\n```diff\n int a;\n+int b;\n```\n"))

    def test_a_diff_of_additions_alone_is_refused(self):
        self.assertIn("0 times", self.refused("`engine/old.h`:\n```diff\n+int b;\n```\n"))

    def test_a_block_of_a_file_that_exists_is_refused(self):
        self.assertIn("show a diff", self.refused("`engine/old.h`:\n```cpp\nint b;\n```\n"))

    def test_a_diff_of_a_missing_file_is_refused(self):
        self.assertIn("there is no engine/none.h", self.refused("`engine/none.h`:\n```diff\n-int b;\n```\n"))

    def test_a_missing_block_names_the_page_and_the_file(self):
        self.assertEqual(self.refused(NEW, ["engine/new.h", "engine/more.h"]), "docs/a.md has no block of the file engine/more.h")

    def test_a_block_that_no_test_uses_is_refused(self):
        self.assertIn("engine/new.h, which tests/docs/CMakeLists.txt does not list", self.refused(NEW))

    def test_a_block_without_an_end_is_refused(self):
        self.assertIn("docs/a.md:1: this block does not end", self.refused("```cpp\nint x;\n"))

    def test_files_of_the_product_are_counted_by_section(self):
        tests = "`tests/a.cpp`:\n```cpp\nint x;\n```\n"
        self.put(PAGE, "## One\n" + NEW + tests + "## Two\n" + EDIT + EDIT)
        extract.places(self.folder.name, PAGE, 1)
        self.put(PAGE, "## One\n" + NEW + "## Two\n" + NEW + EDIT)
        with self.assertRaises(extract.Stale) as caught:
            extract.places(self.folder.name, PAGE, 1)
        self.assertIn("Two: changes 2 files of the product, not 1: engine/new.h, engine/old.h", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
