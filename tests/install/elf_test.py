"""No file that the build makes or `cmake --install` writes loads code from the current folder, and all of them are hardened; links
between installed documents lead somewhere.

Usage: elf_test.py BUILD COMPILER CMAKE HARDENED(ON|OFF)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import elf_file

BUILD = COMPILER = CMAKE = ""
HARDENED = True
# What is not linked by this build: Arrow's wheel (its libraries are examined where they are installed), and CMake's own trials.
NOT_BUILT = ("arrow-venv", "CMakeFiles", "package")
PLANTED = """#include <unistd.h>
__attribute__((constructor)) static void run(void) { if (write(2, "PLANTED CODE RAN\\n", 17)) _exit(42); }
"""


def run(*command, input="", cwd=None):
    return subprocess.run(command, text=True, input=input, cwd=cwd, capture_output=True)


class Scratch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="elf_test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def compiled(self, name, source, *options):
        path = os.path.join(self.folder, name)
        done = run(COMPILER, "-x", "c++", "-", "-o", path, *options, input=source)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path


class Installed(Scratch):
    """The build tree, and a prefix into which it is installed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = os.path.join(cls.folder, "prefix")
        # The component bundle copies the system's libraries and asks dpkg for their licences.
        for component in ["troupe"] + (["bundle"] if shutil.which("dpkg-query") else []):
            done = run(CMAKE, "--install", BUILD, "--prefix", cls.prefix, "--component", component)
            if done.returncode:
                raise AssertionError(done.stdout + done.stderr)

    def programs(self):
        return [os.path.join(BUILD, "troupe"), os.path.join(self.prefix, "bin", "troupe")]

    def test_every_file_of_the_build_tree(self):
        count, wrong = elf_file.examine([BUILD], HARDENED, NOT_BUILT)
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(count, 2)

    def test_every_installed_file(self):
        count, wrong = elf_file.examine([self.prefix], HARDENED)
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(count, 2)

    def test_links_of_the_installed_documentation(self):
        links = 0
        for place, _, names in os.walk(os.path.join(self.prefix, "share")):
            for page in (os.path.join(place, name) for name in names if name.endswith(".md")):
                with open(page, encoding="utf-8") as file:
                    found = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", re.sub(r"```.*?```|`[^`\n]*`", "", file.read(), flags=re.S))
                links += len(found)
                for link in found:
                    self.assertTrue(os.path.exists(os.path.join(place, link)), f"{page}: {link}")
        self.assertGreater(links, 100)

    def test_hardening_is_active(self):
        if not HARDENED:
            self.skipTest("a build with sanitizers")
        for program in self.programs():
            imports = elf_file.ElfFile(program).imports()
            self.assertIn("__stack_chk_fail", imports, program)
            self.assertIn("__memcpy_chk", imports, f"{program}: _FORTIFY_SOURCE has no effect")

    def test_every_source_is_compiled_with_the_options(self):
        if not HARDENED:
            self.skipTest("a build with sanitizers")
        with open(os.path.join(BUILD, "compile_commands.json")) as file:
            commands = json.load(file)
        self.assertGreater(len(commands), 100)
        for each in commands:
            words = each["command"].split()
            with self.subTest(each["file"]):
                levels = re.findall(r" -O([0-3sgz]?|fast)(?= )", each["command"])
                fortify = [word for word in words if "_FORTIFY_SOURCE" in word]
                self.assertIn("-fstack-protector-strong", words)
                self.assertFalse([word for word in words if word.startswith(("-fno-stack-protector", "-fno-pi"))])
                if levels and levels[-1] != "0":
                    self.assertEqual(fortify[-1:], ["-D_FORTIFY_SOURCE=3"])

    def test_code_planted_in_the_current_folder_does_not_run(self):
        library = self.compiled("planted.so", PLANTED, "-shared", "-fPIC")
        for program in self.programs():
            with self.subTest(program), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                for name in self.libraries_of(program):
                    for place in ("", "glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2", "tls", "x86_64"):
                        os.makedirs(os.path.join(folder, place), exist_ok=True)
                        shutil.copy(library, os.path.join(folder, place, name))
                with open(os.path.join(folder, "rows.parquet"), "wb") as file:
                    file.write(b"PAR1" + bytes(32) + b"PAR1")
                # The second one loads Arrow's libraries, the third one MPI's.
                commands = [[program, "--version"], [program, "info", "rows.parquet"]]
                if shutil.which("mpirun"):
                    commands.append(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", program, "generate",
                                     "--model", ".", "--prompt", "a"])
                for command in commands:
                    done = run(*command, cwd=folder)
                    self.assertNotIn("PLANTED", done.stdout + done.stderr, command)
                    self.assertNotEqual(done.returncode, 42, command)

    def libraries_of(self, program):
        """Names of all libraries that the program and its modules load."""
        modules = [os.path.join(os.path.dirname(program), place, name)
                   for place in ("", "../lib/troupe") for name in ("libtroupe_mpi.so", "libtroupe_parquet.so")]
        names = {"libtroupe_mpi.so", "libtroupe_parquet.so"}
        for file in [program] + [each for each in modules if os.path.exists(each)]:
            listed = run("ldd", file).stdout
            names |= set(re.findall(r"^\s*(?:\S*/)?([^/\s]+\.so[^/\s]*) ", listed, re.MULTILINE))
        return sorted(name for name in names if not name.startswith("ld-linux"))


class Rules(Scratch):
    """Files that break a rule are found."""

    def mistakes(self, *options):
        elf = elf_file.ElfFile(self.compiled("program", "int main() {}", *options))
        return list(elf_file.loading_mistakes(elf)) + list(elf_file.hardening_mistakes(elf))

    def test_a_good_program_breaks_none(self):
        self.assertEqual(self.mistakes("-pie", "-fPIE", "-Wl,-z,relro,-z,now", "-Wl,-rpath,$ORIGIN/../lib:/usr/lib"), [])

    def test_each_rule_can_be_broken(self):
        good = ("-pie", "-fPIE", "-Wl,-z,relro,-z,now")
        for options, expected in (
                (("-Wl,-rpath,/a:",), "RUNPATH '/a:' has the element ''"),
                (("-Wl,-rpath,:/a",), "RUNPATH ':/a' has the element ''"),
                (("-Wl,-rpath,lib",), "RUNPATH 'lib' has the element 'lib'"),
                (("-Wl,--disable-new-dtags,-rpath,.",), "RPATH '.' has the element '.'"),
                (("-Wl,-rpath,$ORIGINAL/lib",), "RUNPATH '$ORIGINAL/lib' has the element"),
                (("-Wl,-dynamic-linker,ld.so",), "its interpreter 'ld.so' depends on"),
                (("-Wl,-z,execstack",), "its stack is executable"),
                (("-Wl,-z,norelro",), "no RELRO"),
                (("-Wl,-z,lazy",), "no BIND_NOW"),
                (("-no-pie",), "not position-independent")):
            with self.subTest(options):
                self.assertTrue(any(each.startswith(expected) for each in self.mistakes(*good, *options)), expected)

    def test_a_library_by_a_relative_path_is_found(self):
        self.compiled("librelative.so", "void called() {}", "-shared", "-fPIC")
        path = self.compiled("caller", "void called(); int main() { called(); }", "-Wl,--no-as-needed", "-L" + self.folder, "-lrelative")
        with open(path, "r+b") as file:
            data = file.read()
            file.seek(data.index(b"librelative.so"))
            file.write(b"lib/elative.so")
        self.assertTrue(any("'lib/elative.so'" in each for each in elf_file.loading_mistakes(elf_file.ElfFile(path))))


if __name__ == "__main__":
    BUILD, COMPILER, CMAKE, hardened = sys.argv[1:5]
    HARDENED = hardened == "ON"
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
