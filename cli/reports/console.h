// How ddlrun writes to its own standard output and standard error: reports, notes, refusals, a line of progress, and
// colours for a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/options/request.h"
#include "contract/ddlrun.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// Wraps text in ANSI attributes, or returns it unchanged.
class TerminalStyle {
 public:
  explicit TerminalStyle(bool colour) : colour_(colour) {}
  /// Colour if fd is a terminal that understands it (TERM is set and not "dumb") and NO_COLOR is empty or unset
  /// (https://no-color.org).
  static TerminalStyle for_fd(int fd, const Environment& environment);

  /// Whether fd is a terminal that understands ANSI escape sequences; NO_COLOR has no influence.
  static bool understands_escapes(int fd, const Environment& environment);

  bool has_colour() const { return colour_; }
  std::string alarm(std::string_view text) const { return wrap("1;31", text); }  ///< bold red
  std::string strong(std::string_view text) const { return wrap("1", text); }    ///< bold
  std::string faint(std::string_view text) const { return wrap("2", text); }

 private:
  std::string wrap(const char* attributes, std::string_view text) const;
  bool colour_;
};

/// Writes each text at once and without a buffer, so that it stays in order with the output of ranks. For one thread.
class Console {
 public:
  explicit Console(const Environment& environment);

  /// Prints the requested text on standard output. Returns the exit code: kSuccess, or kOutputLost after a note on
  /// standard error if it cannot be written.
  int print(const std::string& text) const;
  /// One sentence on standard error, after "ddlrun: ". Control characters in it are made printable, as in refuse().
  void note(const std::string& sentence) const;
  /// The error with its hint on standard error. Returns the exit code.
  int refuse(const Error& error, int exit_code = contract::kUsageError) const;
  /// A finished text on standard error. False if it could not be written.
  bool report(const std::string& text) const;

  /// A function that shows a sentence on a line of standard error, in place of the one before. "" erases the line,
  /// and so does the next report. Empty if standard error is not a terminal that can erase a line. Must not outlive
  /// this object.
  std::function<void(const std::string& sentence)> progress() const;

  const TerminalStyle& error_style() const { return error_style_; }

 private:
  TerminalStyle error_style_;
  bool has_cursor_;                      // standard error is a terminal that can rewrite a line
  mutable bool shows_progress_ = false;  // the cursor is behind a sentence that must be erased
};

}  // namespace ddl::cli
