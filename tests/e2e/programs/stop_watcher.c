/* stop_watcher FIFO: a rank that ignores SIGTSTP and has a worker that does not. Writes to the FIFO what the kernel tells
 * it about the worker: "stopped\n", "continued\n"; then has the worker end and exits with 0. So a test learns of a stop
 * while ddlrun itself stands still. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(int fifo, const char* what) {
  if (write(fifo, what, strlen(what)) < 0) _exit(99);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fifo = open(argv[1], O_WRONLY);
  if (fifo < 0) return 99;
  signal(SIGTSTP, SIG_IGN);
  int settled[2];
  if (pipe(settled) != 0) return 99;
  const pid_t worker = fork();
  if (worker == 0) {
    signal(SIGTSTP, SIG_DFL);
    close(settled[0]);
    close(settled[1]);
    for (;;) pause();
  }
  close(settled[1]);
  char byte;
  if (read(settled[0], &byte, 1) != 0) return 99; /* end of file: the worker is ready */
  puts("ready");
  fflush(stdout);
  for (;;) {
    int status = 0;
    if (waitpid(worker, &status, WUNTRACED | WCONTINUED) != worker) return 99;
    if (WIFSTOPPED(status)) tell(fifo, "stopped\n");
    if (WIFCONTINUED(status)) {
      tell(fifo, "continued\n");
      kill(worker, SIGKILL);
    }
    if (WIFSIGNALED(status)) return 0;
  }
}
