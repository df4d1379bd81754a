// Threads that a library starts in a program that is not its own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace ddl {

/// Starts a thread that handles no signal of the program. name: at most 15 characters. kSystem: the system has no more
/// threads for this process.
template <class Function>
Result<std::thread> start_own_thread(const char* name, Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  std::string error;
  try {
    thread = std::thread(std::move(function));
    ::pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error& failure) {
    error = failure.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!thread.joinable())
    return fail(ErrorCode::kSystem, std::string("starting the thread ") + name + ": " + error);
  return thread;
}

}  // namespace ddl
