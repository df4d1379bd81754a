#include "launcher/output/writer_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ddl::launcher {
namespace {

/// Neighbours are joined up to this size: one system call instead of many.
constexpr std::size_t kMaxWriteBytes = 64 * 1024;

struct Job {
  int target = 0;
  std::string bytes;
  std::function<void()> done;
};

/// Signals are the event loop's. SIGPIPE is blocked so that a write to a closed pipe returns EPIPE instead. SIGTTOU
/// stays: a terminal with "stty tostop" stops a background ddlrun as it stops any other command.
void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGTTOU);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

struct WriterThread::State {
  // Set before the thread starts, used only by it.
  Write write;
  std::weak_ptr<char> owner;

  std::mutex mutex;  // guards everything below
  std::condition_variable wake;
  std::condition_variable idle;
  std::deque<Job> jobs;
  bool writing = false;
  bool stopping = false;
  Post post;  // emptied when the owner goes away; called under the mutex, so never afterwards
  std::thread thread;
};

WriterThread::WriterThread(std::shared_ptr<State> state) : state_(std::move(state)) {
  state_->owner = alive_;
}

Result<WriterThread> WriterThread::start(Write write, Post post) {
  auto state = std::make_shared<State>();
  state->write = std::move(write);
  state->post = std::move(post);
  WriterThread started(state);
  // The thread inherits the mask, so that no signal finds it between its start and its first line.
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  block_signals();
  int error = 0;
  try {
    state->thread = std::thread([state] { run(*state); });
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(errno_error("starting a thread", error));
  return started;
}

WriterThread::~WriterThread() {
  if (!state_ || !state_->thread.joinable()) return;  // moved from, or never started
  bool is_writing = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->jobs.clear();
    state_->post = nullptr;
    is_writing = state_->writing;
  }
  state_->wake.notify_one();
  if (is_writing) {
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

void WriterThread::push(int target, std::string bytes, std::function<void()> done) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back({target, std::move(bytes), std::move(done)});
  }
  state_->wake.notify_one();
}

bool WriterThread::drain(Deadline deadline) {
  std::unique_lock lock(state_->mutex);
  const auto is_idle = [this] { return state_->jobs.empty() && !state_->writing; };
  if (deadline.is_never()) {
    state_->idle.wait(lock, is_idle);
    return true;
  }
  return state_->idle.wait_until(lock, deadline.when(), is_idle);
}

void WriterThread::run(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.wake.wait(lock, [&state] { return state.stopping || !state.jobs.empty(); });
    if (state.stopping) return;

    Job job = std::move(state.jobs.front());
    state.jobs.pop_front();
    std::vector<std::function<void()>> all_done;
    all_done.push_back(std::move(job.done));
    while (!state.jobs.empty() && state.jobs.front().target == job.target &&
           job.bytes.size() + state.jobs.front().bytes.size() <= kMaxWriteBytes) {
      job.bytes += state.jobs.front().bytes;
      all_done.push_back(std::move(state.jobs.front().done));
      state.jobs.pop_front();
    }
    state.writing = true;
    lock.unlock();

    std::function<void()> event = state.write(job.target, job.bytes);
    job = {};  // the memory is free before its credit is

    lock.lock();
    state.writing = false;
    if (state.post) {
      state.post([owner = state.owner, event = std::move(event), all_done = std::move(all_done)] {
        if (owner.expired()) return;
        if (event) event();
        for (const auto& done : all_done) done();
      });
    }
    if (state.jobs.empty()) state.idle.notify_all();
  }
}

}  // namespace ddl::launcher
