#include "cli/reports/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/printable_text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"

namespace ddl::cli {

bool TerminalStyle::understands_escapes(int fd, const Environment& environment) {
  const std::string term = value_of(environment, "TERM");
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

TerminalStyle TerminalStyle::for_fd(int fd, const Environment& environment) {
  return TerminalStyle(understands_escapes(fd, environment) &&
                       value_of(environment, contract::env::kNoColor).empty());
}

std::string TerminalStyle::wrap(const char* attributes, std::string_view text) const {
  if (!colour_) return std::string(text);
  return "\x1b[" + std::string(attributes) + "m" + std::string(text) + "\x1b[0m";
}

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Console::Console(const Environment& environment)
    : error_style_(TerminalStyle::for_fd(STDERR_FILENO, environment)),
      has_cursor_(TerminalStyle::understands_escapes(STDERR_FILENO, environment)) {}

int Console::print(const std::string& text) const {
  const Status written = write_all(STDOUT_FILENO, text.data(), text.size());
  if (written) return contract::kSuccess;
  note("standard output: " + written.error().message());
  return contract::kOutputLost;
}

void Console::note(const std::string& sentence) const {
  report(error_style_.strong("ddlrun:") + " " + printable_text(sentence) + "\n");
}

int Console::refuse(const Error& error, int exit_code) const {
  // A line end in what a user typed must not break the sentence; sbatch's own words may be several lines.
  const std::string message =
      exit_code == contract::kUsageError ? printable_line(error.message()) : printable_text(error.message());
  std::string text = error_style_.alarm("ddlrun:") + " " + message + "\n";
  if (!error.hint().empty()) text += error_style_.strong("hint:") + " " + printable_text(error.hint()) + "\n";
  report(text);
  return exit_code;
}

bool Console::report(const std::string& text) const {
  const std::string whole = shows_progress_ ? std::string(kEraseLine) + text : text;
  shows_progress_ = false;
  // A failure to write to standard error cannot be reported anywhere.
  return write_all(STDERR_FILENO, whole.data(), whole.size()).has_value();
}

std::function<void(const std::string&)> Console::progress() const {
  if (!has_cursor_) return nullptr;
  return [this](const std::string& sentence) {
    // The line is cut, because one that wraps could not be erased.
    winsize size{};
    constexpr std::size_t kUsual = 80;
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    const std::size_t columns = known ? size.ws_col : kUsual;
    const std::string line = sentence.empty() ? "" : "ddlrun: " + sentence;
    if (line.empty() && !shows_progress_) return;
    report(line.substr(0, columns - 1));
    shows_progress_ = !line.empty();
  };
}

}  // namespace ddl::cli
