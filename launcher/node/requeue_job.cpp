#include "launcher/node/requeue_job.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/environment.h"
#include "base/fd.h"
#include "launcher/node/node_probe.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {
namespace {

/// The host has sent something back: also one where nobody listens.
bool is_answer(int error) { return error == 0 || error == ECONNREFUSED; }

void say_on_standard_error(const std::string& sentence) {
  std::fprintf(stderr, "ddlrun agent on %s: %s\n", hostname().c_str(), sentence.c_str());
}

}  // namespace

bool does_host_answer(const std::string& host, const std::string& port, std::chrono::milliseconds patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0) return true;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  std::vector<UniqueFd> sockets;
  std::vector<pollfd> waited;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) continue;
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 || is_answer(errno)) return true;
    if (errno != EINPROGRESS) continue;
    waited.push_back({socket.get(), POLLOUT, 0});
    sockets.push_back(std::move(socket));
  }
  const Deadline deadline = Deadline::after(patience);
  while (!waited.empty()) {
    if (retry_eintr([&] { return ::poll(waited.data(), waited.size(), deadline.poll_milliseconds()); }) <= 0)
      return false;
    for (const pollfd& one : waited) {
      int error = 0;
      socklen_t size = sizeof error;
      if (one.revents != 0 && ::getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
          is_answer(error))
        return true;
    }
    std::erase_if(waited, [](const pollfd& one) { return one.revents != 0; });
  }
  return false;
}

bool requeue_job(const Requeue& order, const RequeueSettings& settings) {
  const auto say = settings.say ? settings.say : say_on_standard_error;
  if (order.turn >= settings.max_turns) return false;
  std::this_thread::sleep_for(order.turn * settings.turn);  // SIGTERM ends this process
  const Environment own = process_environment();
  SchedulerJob job;
  job.scheduler = order.scheduler;
  const Scheduler& scheduler = scheduler_of(job);
  const std::string name = order.scheduler + " job " + order.job;
  // In this order: the scheduler's answer shows that this host is connected, so that silence is the other host's.
  const auto may = scheduler.may_requeue(order.job, own);
  if (!may) {
    say(name + " is not requeued: " + may.error().message());
    return false;
  }
  if (!*may) return false;
  if (settings.does_answer(order.head_host, scheduler.node_port())) {
    say(name + " is not requeued, because " + order.head_host + ", where ddlrun runs, answers");
    return false;
  }
  if (const Status done = scheduler.requeue(order.job, own); !done) {
    say(name + " is not requeued: " + done.error().message());
    return false;
  }
  say(order.head_host + ", where ddlrun runs, is lost: " + name + " is requeued");
  return true;
}

}  // namespace ddl::launcher
