// A process in the background that is no child of the program: it raises no SIGCHLD there, and no wait of the program's meets it, as
// they would one that Java starts.
//
// The process between the two is one of clone without a signal for its end, which only __WCLONE waits for. exec would give the
// signal back, so it starts another one, which init or a subreaper inherits.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

enum { STACK = 32 << 10 };

typedef struct request {
  char *const *words;
  _Alignas(16) char stacks[2][STACK];
} request;

// The two run in the memory of the parent, one thread of which waits until they have left it: they call the system only.

static int become(void *data) {
  const request *r = data;
  execv(r->words[0], r->words);
  _exit(127);
}

static void close_from(unsigned first) {
  struct rlimit limit;
  if (syscall(SYS_close_range, first, ~0u, 0) == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  for (rlim_t fd = first; fd < limit.rlim_cur; fd++) { // Linux before 5.9
    close((int)fd);
  }
}

static int between(void *data) {
  request *r = data;
  sigset_t none;
  // No handler of the program's runs here: all is the default before a signal may come.
  for (int number = 1; number < NSIG; number++) {
    signal(number, SIG_DFL);
  }
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // It holds no pipe, folder or terminal of the program's.
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || chdir("/") != 0) {
    _exit(1);
  }
  setsid();
  for (int fd = 0; fd < 3; fd++) {
    dup2(nothing, fd);
  }
  close_from(3);
  clone(become, r->stacks[1] + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, r);
  _exit(0);
}

void shim_in_background(char *const *words) {
  request r = {.words = words};
  int pid = clone(between, r.stacks[0] + STACK, CLONE_VM | CLONE_VFORK, &r);
  if (pid > 0) {
    waitpid(pid, NULL, __WCLONE);
  }
}
