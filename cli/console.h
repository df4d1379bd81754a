// ddlrun's own words on standard output and standard error.
#pragma once

#include <functional>
#include <string>

#include "cli/options.h"
#include "cli/terminal_style.h"

namespace ddl::cli {

/// Writes whole texts at once, past any buffer, so that they stay in order with what ranks write. For one thread.
class Console {
 public:
  explicit Console(const launcher::Environment& environment);

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
