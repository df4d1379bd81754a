/* fork_storm: a rank that ignores SIGTERM, with two dozen workers that do so, too; each has its own session and
 * starts a process as soon as the one before is about to end. They leave time to others: where each session has a share
 * of the CPUs (autogroup in sched(7)), hundreds of busy ones would stop everything else on the machine, also other
 * tests. Prints "ready" once all workers are running. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kWorkers = 24 };

static void linger(long nanoseconds) {
  const struct timespec time = {0, nanoseconds};
  nanosleep(&time, NULL);
}

static void work(int started) {
  setsid();
  for (int round = 0;; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      linger(25000000);
      _exit(0);
    }
    if (round == 0) {
      if (write(started, "s", 1) != 1) _exit(99);
      close(started);
    }
    linger(20000000);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
}

int main(void) {
  signal(SIGTERM, SIG_IGN);
  int started[2];
  if (pipe(started) != 0) return 99;
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (fork() == 0) {
      close(started[0]);
      work(started[1]);
    }
  }
  close(started[1]);
  char byte;
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (read(started[0], &byte, 1) != 1) return 99;
  }
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
