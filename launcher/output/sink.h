// Where output ends: a terminal, a pipe, a file.
#pragma once

#include <functional>
#include <string>

namespace ddl::launcher {

/// Runs a function later on the thread that owns the sinks and the OutputMux, never at once. Called from any thread.
using Post = std::function<void(std::function<void()>)>;

/// Takes bytes in order. All calls come from one thread. How much may wait in it is the caller's business: OutputMux
/// waits for done before it writes more.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Returns at once. done is called on the caller's thread, never from inside write(), when the bytes have been
  /// written, or dropped because the sink is broken; never after the sink's destruction.
  virtual void write(std::string bytes, std::function<void()> done) = 0;
};

}  // namespace ddl::launcher
