// Standard output and standard error as ddlrun itself uses them: reports, notes, refusals, a line of
// progress, and colours for a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/options/request.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// Wraps text in ANSI attributes, or returns it unchanged.
class TerminalStyle {
 public:
  explicit TerminalStyle(bool colour) : colour_(colour) {}
  /// Colour if fd is a terminal that understands it (TERM is set and not "dumb") and NO_COLOR is empty or unset
  /// (https://no-color.org).
  static TerminalStyle for_fd(int fd, const Environment& environment);

  /// Whether fd is a terminal that understands ANSI's sequences, also where colour is not wanted.
  static bool understands_escapes(int fd, const Environment& environment);

  bool has_colour() const { return colour_; }
  std::string alarm(std::string_view text) const { return wrap("1;31", text); }  ///< bold red
  std::string strong(std::string_view text) const { return wrap("1", text); }    ///< bold
  std::string faint(std::string_view text) const { return wrap("2", text); }

 private:
  std::string wrap(const char* attributes, std::string_view text) const;
  bool colour_;
};

/// Writes whole texts at once, past any buffer, so that they stay in order with what ranks write. For one thread.
class Console {
 public:
  explicit Console(const Environment& environment);

  /// What was asked for, on standard output. Returns the exit code: kSuccess, or kOutputLost where it cannot be
  /// written (said on standard error).
  int print(const std::string& text) const;
  /// One sentence on standard error, after "ddlrun: ". What it quotes of a program is made safe to print, as in refuse().
  void note(const std::string& sentence) const;
  /// The refusal with its hint on standard error. Returns its exit code.
  int refuse(const CommandLineError& error) const;
  /// A finished text on standard error. False if it could not be written.
  bool report(const std::string& text) const;

  /// Shows a sentence in place of the one before, on a line of standard error that is taken away again with "", and by
  /// whatever is said next. Empty where standard error is no terminal that can do that: a file does not want it. Lives as long as this.
  std::function<void(const std::string& sentence)> progress() const;

  const TerminalStyle& error_style() const { return error_style_; }

 private:
  TerminalStyle error_style_;
  bool has_cursor_;                      // standard error is a terminal that can rewrite a line
  mutable bool shows_progress_ = false;  // the cursor stands behind a sentence that is to be taken away
};

}  // namespace ddl::cli
