// A question to a library or a program that may crash or hang, asked in a child.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/command.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"

namespace ddl {

/// A forked child that says one text and ends. For a process with one thread. It inherits nothing to whoever runs longer,
/// hears nothing on its standard input, and what it writes on the other standard streams is lost: a library's own words are not
/// the user's. It is a process group of its own, so that all of it can be ended.
class ChildQuestion {
 public:
  /// Begins; several may be on their way at once. Error: no child could be forked.
  static Result<ChildQuestion> ask(const std::function<std::string()>& question);

  /// What it said, once it has; it is gone then, with all that it has started. Errors: kTimeout; kUnavailable, it was killed by a
  /// signal, which is named, or ended before it had said all; kProtocol, it says more than 16 megabytes.
  Result<std::string> answer(Deadline deadline);

 private:
  ChildQuestion(Child child, UniqueFd from) : child_(std::move(child)), from_(std::move(from)) {}

  Child child_;
  UniqueFd from_;
};

}  // namespace ddl
