"""What the dynamic linker and the kernel read of an ELF file, and the rules for the files of troupe.

Usage: elf_file.py [--hardened] FOLDER...   examines all ELF files in the folders; prints what breaks a rule, exit code 1.
"""
import os
import struct
import sys

PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_RPATH, DT_RUNPATH, DT_FLAGS = 1, 5, 6, 10, 15, 29, 30
DT_BIND_NOW, DT_FLAGS_1, DT_AUXILIARY, DT_FILTER = 24, 0x6FFFFFFB, 0x7FFFFFFD, 0x7FFFFFFF
DT_AUDIT, DT_DEPAUDIT, DT_GNU_HASH = 0x6FFFFEFC, 0x6FFFFEFB, 0x6FFFFEF5
DF_BIND_NOW, DF_1_NOW, DF_1_PIE, PF_X = 8, 1, 0x08000000, 1
ET_EXEC, ET_DYN, SHT_DYNSYM, SHN_UNDEF = 2, 3, 11, 0


class ElfFile:
    """A linked 64-bit little-endian ELF file. Raises ValueError for other files."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                raise ValueError("not a 64-bit little-endian ELF file")
            self.data = head + file.read()
        self.type, = struct.unpack_from("<H", self.data, 16)
        if self.type not in (ET_EXEC, ET_DYN):
            raise ValueError("not linked")
        at, sections_at = struct.unpack_from("<QQ", self.data, 32)
        size, count, section_size, section_count = struct.unpack_from("<HHHH", self.data, 54)
        # (type, flags, offset, address, size in the file)
        self.segments = []
        for i in range(count):
            kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, at + i * size)
            self.segments.append((kind, flags, offset, address, length))
        self.dynamic = {}
        for kind, _, offset, _, length in self.segments:
            for i in range(length // 16 if kind == PT_DYNAMIC else 0):
                tag, value = struct.unpack_from("<QQ", self.data, offset + 16 * i)
                if tag == 0:
                    break
                self.dynamic.setdefault(tag, []).append(value)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, sections_at + i * section_size)
                         for i in range(section_count)]

    def _offset(self, address):
        for kind, _, offset, start, length in self.segments:
            if kind == 1 and start <= address < start + length:
                return offset + address - start
        raise ValueError(f"{self.path}: address {address:#x} is in no segment")

    def _text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def strings(self, tag):
        table = self._offset(self.dynamic[DT_STRTAB][0]) if tag in self.dynamic else 0
        return [self._text(table + value) for value in self.dynamic.get(tag, [])]

    def interpreter(self):
        found = [self._text(offset) for kind, _, offset, _, _ in self.segments if kind == PT_INTERP]
        return found[0] if found else None

    def flags_of(self, segment):
        found = [flags for kind, flags, _, _, _ in self.segments if kind == segment]
        return found[0] if found else None

    def imports(self):
        """Names of the undefined dynamic symbols."""
        names = set()
        for section in self.sections:
            if section[1] != SHT_DYNSYM:
                continue
            offset, size = section[4], section[5]
            strings = self.sections[section[6]][4]
            for at in range(offset, offset + size, 24):
                name, _, _, index = struct.unpack_from("<IBBH", self.data, at)
                if index == SHN_UNDEF and name:
                    names.add(self._text(strings + name))
        return names

    def flag(self, tag, bit):
        return any(value & bit for value in self.dynamic.get(tag, []))


def is_fixed(folder):
    """Whether an element of a search path is the same folder wherever the program is started."""
    return folder.startswith("/") or folder.split("/")[0] in ("$ORIGIN", "${ORIGIN}")


def loading_mistakes(elf):
    """Why the dynamic linker would load something from the current folder, or the kernel run the stack."""
    for tag, name in ((DT_RPATH, "RPATH"), (DT_RUNPATH, "RUNPATH")):
        for path in elf.strings(tag):
            for folder in dict.fromkeys(path.split(":")):
                if not is_fixed(folder):
                    yield f"{name} {path!r} has the element {folder!r}, which depends on the current folder"
    for tag, name in ((DT_NEEDED, "needs"), (DT_AUDIT, "is audited by"), (DT_DEPAUDIT, "is audited by"),
                      (DT_FILTER, "filters"), (DT_AUXILIARY, "filters")):
        for library in elf.strings(tag):
            if "/" in library and not library.startswith("/"):
                yield f"{name} {library!r}, a path that depends on the current folder"
    interpreter = elf.interpreter()
    if interpreter is not None and not interpreter.startswith("/"):
        yield f"its interpreter {interpreter!r} depends on the current folder"
    stack = elf.flags_of(PT_GNU_STACK)
    if stack is None or stack & PF_X:
        yield "its stack is executable (GNU_STACK)"


def hardening_mistakes(elf):
    """Which of the link options of cmake/troupe.cmake have no effect in the file."""
    if elf.flags_of(PT_GNU_RELRO) is None:
        yield "no RELRO: relocations remain writable"
    if not (elf.flag(DT_FLAGS, DF_BIND_NOW) or elf.flag(DT_FLAGS_1, DF_1_NOW) or DT_BIND_NOW in elf.dynamic):
        yield "no BIND_NOW: the table of functions remains writable"
    if elf.interpreter() is not None and (elf.type != ET_DYN or not elf.flag(DT_FLAGS_1, DF_1_PIE)):
        yield "not position-independent (PIE)"


def elf_files(folder, without=()):
    """The linked ELF files below the folder; symbolic links and the folders named `without` are left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in without]
        for name in sorted(names):
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                yield ElfFile(path)
            except ValueError:
                pass


def is_own(elf):
    """Whether troupe's build linked the file; the other ones of an installation are libraries of others."""
    name = os.path.basename(elf.path)
    return elf.interpreter() is not None or name.startswith("libtroupe_")


def examine(folders, hardened, without=()):
    """(number of files, what is wrong)."""
    count, wrong = 0, []
    for folder in folders:
        for elf in elf_files(folder, without):
            count += 1
            found = list(loading_mistakes(elf))
            if hardened and is_own(elf):
                found += hardening_mistakes(elf)
            wrong += [f"{elf.path}: {each}" for each in found]
    return count, wrong


def main(arguments):
    hardened = arguments[:1] == ["--hardened"]
    count, wrong = examine(arguments[hardened:], hardened)
    print("\n".join(wrong + [f"{count} ELF files, {len(wrong)} mistakes"]))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
