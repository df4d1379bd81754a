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

/// A forked child that sends back one text and ends. For a process with one thread. Its pipe is close-on-exec, so a
/// program that it starts and that runs longer does not hold it. Its standard streams are /dev/null: a library's own
/// output is not for the user. It leads a process group of its own, so that all of it can be killed.
class ChildQuestion {
 public:
  /// Starts the child; several may run at once. Error: no child could be forked.
  static Result<ChildQuestion> ask(const std::function<std::string()>& question);

  /// Waits for the text; after that the child is gone, with all that it has started in its group. Errors: kTimeout;
  /// kUnavailable, it was killed by a signal, which is named, or ended before it had sent all; kProtocol, it sends
  /// more than 16 megabytes.
  Result<std::string> answer(Deadline deadline);

 private:
  ChildQuestion(Child child, UniqueFd from) : child_(std::move(child)), from_(std::move(from)) {}

  Child child_;
  UniqueFd from_;
};

}  // namespace ddl
