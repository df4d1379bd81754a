/* stop_watcher FIFO: a rank that ignores SIGTSTP and has a worker that does not. Writes to the FIFO what waitpid
 * reports about the worker: "stopped\n", "continued\n"; then ends the worker and exits with 0. So a test can observe
 * a stop while ddlrun itself is stopped. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(int fifo, const char* what) {
  if (write(fifo, what, strlen(what)) < 0) _exit(99);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fifo = open(argv[1], O_WRONLY);
  if (fifo < 0) return 99;
  signal(SIGTSTP, SIG_IGN);
  int ready[2];
  if (pipe(ready) != 0) return 99;
  const pid_t worker = fork();
  if (worker == 0) {
    signal(SIGTSTP, SIG_DFL);
    close(ready[0]);
    close(ready[1]);
    for (;;) pause();
  }
  close(ready[1]);
  char byte;
  if (read(ready[0], &byte, 1) != 0) return 99; /* end of file: the worker is ready */
  puts("ready");
  fflush(stdout);
  for (;;) {
    int status = 0;
    if (waitpid(worker, &status, WUNTRACED | WCONTINUED) != worker) return 99;
    if (WIFSTOPPED(status)) report(fifo, "stopped\n");
    if (WIFCONTINUED(status)) {
      report(fifo, "continued\n");
      kill(worker, SIGKILL);
    }
    if (WIFSIGNALED(status)) return 0;
  }
}
