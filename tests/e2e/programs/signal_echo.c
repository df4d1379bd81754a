/* signal_echo [EXIT_SIGNAL EXIT_CODE]: a rank that prints the signals that it gets ("got SIGUSR1"), one a line, and
 * exits with EXIT_CODE after EXIT_SIGNAL. Without arguments only SIGKILL ends it. Prints "ready" when its handlers
 * are set. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  const int wanted[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};
  sigset_t signals;
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) sigaddset(&signals, wanted[i]);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  for (;;) {
    const int signal = sigwaitinfo(&signals, NULL);
    if (signal < 0) continue;
    printf("got SIG%s\n", sigabbrev_np(signal));
    if (argc == 3 && strcmp(argv[1], sigabbrev_np(signal)) == 0) return atoi(argv[2]);
  }
}
