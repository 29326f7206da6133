#include "launch/terminal/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/terminal/interruption.h"

namespace troupe::launch::terminal {

namespace {

namespace fs = std::filesystem;

constexpr int history_lines = 1000;
constexpr std::size_t max_paste = std::size_t{1} << 20;
constexpr std::wstring_view end_of_paste = L"\033[201~";

// libedit decodes keys by the locale; without one, UTF-8 is assumed.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Creates the file and its folders for this user alone; "" if that is impossible.
std::string private_file(const std::string& path) {
  if (path.empty()) return "";
  std::error_code failed;
  const fs::path folder = fs::path(path).parent_path();
  if (fs::create_directories(folder, failed)) fs::permissions(folder, fs::perms::owner_all, failed);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0 && ::fchmod(file, 0600) == 0 && ::close(file) == 0) return path;
  log_warning(cat(path, ": cannot be written; the history of this session is not kept"));
  return "";
}

// Inserts a pasted text as it is, with its newlines: a terminal encloses it in ESC[200~, ESC[201~.
unsigned char insert_paste(EditLine* editor, int) {
  std::wstring text;
  wchar_t key = 0;
  while (text.size() < max_paste && el_wgetc(editor, &key) == 1) {
    if (key != 0) text.push_back(key == L'\r' ? L'\n' : key);
    if (!text.ends_with(end_of_paste)) continue;
    text.resize(text.size() - end_of_paste.size());
    break;
  }
  while (text.ends_with(L'\n')) text.pop_back();
  return text.empty() || el_winsertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

}  // namespace

struct LineEditor::Terminal {
  std::string prompt, history_path;
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::mbstate_t decoding{};
  bool interrupted_line_is_empty = true;

  Terminal(std::string shown, const std::string& path);
  ~Terminal();
  Terminal(const Terminal&) = delete;

  bool read(std::string& line);
  void remember(const std::string& line);
  int read_key(wchar_t* key);
  static Terminal& of(EditLine* editor);
};

LineEditor::Terminal& LineEditor::Terminal::of(EditLine* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return *static_cast<Terminal*>(self);
}

LineEditor::Terminal::Terminal(std::string shown, const std::string& path)
    : prompt(std::move(shown)), history_path(private_file(path)) {
  use_utf8();
  editor = el_init("troupe", stdin, stderr, stderr);  // stdout is for the replies
  history = history_init();
  HistEvent event{};
  ::history(history, &event, H_SETSIZE, history_lines);
  ::history(history, &event, H_SETUNIQUE, 1);
  if (!history_path.empty()) ::history(history, &event, H_LOAD, history_path.c_str());
  el_set(editor, EL_CLIENTDATA, static_cast<void*>(this));
  el_set(
      editor, EL_PROMPT, +[](EditLine* e) { return of(e).prompt.data(); });
  el_set(
      editor, EL_GETCFN, +[](EditLine* e, wchar_t* key) { return of(e).read_key(key); });
  el_set(editor, EL_HIST, ::history, history);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_ADDFN, "paste", "insert a pasted text", insert_paste);
  for (const auto& [key, command] : {std::pair{"\033[200~", "paste"},
                                     {"^R", "em-inc-search-prev"},
                                     {"\033[3~", "ed-delete-next-char"},
                                     {"\033[1;5C", "em-next-word"},
                                     {"\033[1;5D", "ed-prev-word"}})
    el_set(editor, EL_BIND, key, command, nullptr);
  el_source(editor, nullptr);  // ~/.editrc
}

LineEditor::Terminal::~Terminal() {
  history_end(history);
  el_end(editor);
}

// One character of the terminal. Unlike libedit's own function it returns at Ctrl-C.
int LineEditor::Terminal::read_key(wchar_t* key) {
  for (;;) {
    char byte = 0;
    const bool stopped = Interruption::pending();
    const auto count = stopped ? -1 : ::read(STDIN_FILENO, &byte, 1);
    if (count == 0) return 0;
    if (count < 0) {
      if (!stopped && errno != EINTR) return -1;
      if (!Interruption::pending()) continue;  // another signal
      const LineInfo* info = el_line(editor);
      interrupted_line_is_empty = info->lastchar == info->buffer;
      return -1;
    }
    const std::size_t decoded = std::mbrtowc(key, &byte, 1, &decoding);
    if (decoded <= 1) return 1;
    if (decoded == static_cast<std::size_t>(-1)) decoding = {};  // not UTF-8: the byte is left out
  }
}

bool LineEditor::Terminal::read(std::string& line) {
  constexpr std::string_view paste_on = "\033[?2004h", paste_off = "\033[?2004l";
  for (;;) {
    el_resize(editor);
    std::cerr << paste_on << std::flush;
    // el_gets prints the prompt before it prepares the terminal; Ctrl-D between the two is lost.
    el_set(editor, EL_PREP_TERM, 1);
    int count = 0;
    const char* text = el_gets(editor, &count);
    std::cerr << paste_off << std::flush;
    if (text != nullptr && count > 0) {
      line.assign(text, static_cast<std::size_t>(count));
      if (line.ends_with('\n')) line.pop_back();
      remember(line);
      return true;
    }
    std::cerr << std::endl;
    if (!Interruption::take() || interrupted_line_is_empty) return false;
    el_reset(editor);
  }
}

void LineEditor::Terminal::remember(const std::string& line) {
  if (line.find_first_not_of(" \n\t") == std::string::npos) return;
  HistEvent event{};
  ::history(history, &event, H_ENTER, line.c_str());
  if (!history_path.empty()) ::history(history, &event, H_SAVE, history_path.c_str());
}

LineEditor::LineEditor(std::string prompt, const std::string& history) {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
    terminal_ = std::make_unique<Terminal>(std::move(prompt), history);
}

LineEditor::~LineEditor() = default;

bool LineEditor::read(std::string& line) {
  if (terminal_) return terminal_->read(line);
  return static_cast<bool>(std::getline(std::cin, line));
}

std::string chat_history_file() {
  const char *state = std::getenv("XDG_STATE_HOME"), *home = std::getenv("HOME");
  if (state != nullptr && state[0] == '/') return cat(state, "/troupe/chat_history");
  return home != nullptr && home[0] == '/' ? cat(home, "/.local/state/troupe/chat_history") : "";
}

}  // namespace troupe::launch::terminal
