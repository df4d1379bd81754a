#include "launcher/output/blocking_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace ddl::launcher {
namespace {

/// Neighbours are joined up to this size: one system call instead of many.
constexpr std::size_t kMaxWriteBytes = 64 * 1024;

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
  struct Job {
    int target = 0;
    std::string bytes;
    std::function<void()> done;
  };

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

    State::Job job = std::move(state.jobs.front());
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

namespace {

/// Writes all of bytes; 0 or the errno that ended it.
int write_blocking(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retry_eintr([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written >= 0) {
      bytes.remove_prefix(written);
    } else if (errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      if (retry_eintr([&] { return ::poll(&writable, 1, -1); }) < 0) return errno;
    } else {
      return errno;
    }
  }
  return 0;
}

/// What the thread owns, also when the writer has gone.
struct Descriptor {
  UniqueFd fd;
  bool is_broken = false;
  std::function<void(int)> on_broken;
};

}  // namespace

Result<std::unique_ptr<BlockingWriter>> BlockingWriter::create(int fd, Post post,
                                                               std::function<void(int)> on_broken) {
  auto owned = std::make_shared<Descriptor>();
  owned->fd.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!owned->fd) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  owned->on_broken = std::move(on_broken);

  auto write = [owned](int, const std::string& bytes) -> std::function<void()> {
    if (owned->is_broken) return nullptr;
    const int error = write_blocking(owned->fd.get(), bytes);
    if (error == 0) return nullptr;
    owned->is_broken = true;
    return [on_broken = owned->on_broken, error] { on_broken(error); };
  };
  DDL_ASSIGN(thread, WriterThread::start(std::move(write), std::move(post)));
  return std::unique_ptr<BlockingWriter>(new BlockingWriter(std::move(thread)));
}

void BlockingWriter::write(std::string bytes, std::function<void()> done) {
  thread_.push(0, std::move(bytes), std::move(done));
}

bool is_same_file(int fd_a, int fd_b) {
  struct stat a {};
  struct stat b {};
  if (::fstat(fd_a, &a) != 0 || ::fstat(fd_b, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace ddl::launcher
