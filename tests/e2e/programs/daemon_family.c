/* daemon_family stay|exit [stubborn]: a rank with two grandchildren that leave its process group and session and, by
 * a double fork, have another parent: one keeps the rank's standard streams, one has closed them. With "stubborn"
 * they and the rank ignore SIGTERM. Prints "ready" when they are daemons; then waits for signals, or exits with 0. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_signals(void) {
  for (;;) pause();
}

/* Returns in the caller once the daemon runs in its own session, as a child of another process. */
static void start_daemon(int keeps_streams) {
  int settled[2];
  if (pipe(settled) != 0) _exit(99);
  const pid_t middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    setsid();
    close(settled[0]);
    if (!keeps_streams) {
      const int null = open("/dev/null", O_RDWR);
      for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    }
    if (write(settled[1], "s", 1) != 1) _exit(99);
    close(settled[1]);
    wait_for_signals();
  }
  close(settled[1]);
  waitpid(middle, NULL, 0);
  char byte;
  if (read(settled[0], &byte, 1) != 1) _exit(99);
  close(settled[0]);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2 && strcmp(argv[2], "stubborn") == 0) signal(SIGTERM, SIG_IGN);
  start_daemon(1);
  start_daemon(0);
  puts("ready");
  fflush(stdout);
  if (strcmp(argv[1], "stay") == 0) wait_for_signals();
  return 0;
}
