// Once, by a thread of its own.
//
// Why not by the caller's thread: the virtual machine makes whoever creates it its main thread, attached until it says
// otherwise, and needs megabytes of stack that a caller may not have. And the threads that it starts inherit the
// signal mask: here all signals are blocked that it does not need itself, so those of the host program never land on one of them.
// The thread is detached from Java and gone before the first call goes on, so nothing of it is left to wait for at exit.
// What is to be done at exit has such a thread, too.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

#define START_STACK ((size_t)8 << 20)

enum state {
  IDLE,     // not started, or failed and may be tried again
  STARTING, // a thread is at it
  ENDED,    // it is done, and who asked has not taken the result yet
  STARTED,
  BROKEN // it failed in a way that leaves no second attempt to this process
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

// Guarded by lock.
static enum state state = IDLE;
static int result;      // of ENDED
static failure outcome; // of ENDED and BROKEN

// Used by the thread that starts, while the state is STARTING.
static start_options wanted;
static table functions;
static pid_t starter; // set before the table can be used

// Stored with release by the starting thread when the table can be used; whoever loads it with acquire sees all of it.
static _Atomic(const table *) ready;

// Stored in a child between fork() and its return.
static atomic_int forked;

const table *shim_table(void) {
  return atomic_load_explicit(&ready, memory_order_acquire);
}

int shim_forked(void) {
  return atomic_load_explicit(&forked, memory_order_relaxed);
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}

static void after_fork(void) {
  pthread_mutex_unlock(&lock);
}

static void in_child(void) {
  // None of the threads of a virtual machine is here. Who had none may start one.
  if (state != IDLE) {
    atomic_store_explicit(&forked, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, in_child);
}

static int start_thread(pthread_t *thread, void *(*run)(void *)) {
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all);
  const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    sigdelset(&all, kept[i]);
  }
  int error = pthread_attr_init(&attributes);
  if (error != 0) {
    return error;
  }
  pthread_attr_setstacksize(&attributes, START_STACK);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(thread, &attributes, run, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

// ---- the end

int shim_end_seconds = 30;

static void *run_end(void *unused) {
  shim_end();
  return unused;
}

// A program that calls exit, or returns from main, leaves the virtual machine as it is, so hooks of Java's do not run. But
// controllers must not reach the memory of the process when that is others'. The thread that exits may be anywhere, also
// within a call, so it only waits, and not for ever.
static void at_exit(void) {
  pthread_t thread;
  struct timespec limit;
  // Children have the parent's controllers mapped. Those of _Fork and clone are known only by their numbers.
  if (shim_table() == NULL || shim_forked() || getpid() != starter || start_thread(&thread, run_end) != 0) {
    return;
  }
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += shim_end_seconds;
  pthread_timedjoin_np(thread, NULL, &limit);
}

// ---- the start

static void *run_start(void *unused) {
  failure f = {0};
  int ours = 0;
  int code = shim_fill(&functions, &wanted, &ours, &f);
  if (code >= 0 && functions.make == NULL) {
    code = shim_fail(&f, GPUNVME_ERROR_INTERNAL, "Java left the table of functions empty");
  }
  starter = getpid();
  if (code >= 0 && ours) {
    atexit(at_exit); // without memory for that, exit is as _exit
  }
  pthread_mutex_lock(&lock);
  result = code < 0 ? code : GPUNVME_OK;
  outcome = f;
  if (code >= 0) {
    atomic_store_explicit(&ready, &functions, memory_order_release);
  }
  state = ENDED;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return unused;
}

void shim_start_aborted(const failure *f) {
  pthread_mutex_lock(&lock);
  outcome = *f;
  state = BROKEN;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

// With the lock; gives it up while it waits. The state is BROKEN afterwards, or what the result says.
static int start_and_wait(const start_options *options, failure *f) {
  pthread_t thread;
  wanted = *options;
  state = STARTING;
  int error = start_thread(&thread, run_start);
  if (error != 0) {
    state = IDLE;
    pthread_cond_broadcast(&changed);
    shim_fail(f, 0, "no thread could be made to start the virtual machine: %s", strerror(error));
    f->error = error;
    return GPUNVME_ERROR_JAVA;
  }
  while (state == STARTING) {
    pthread_cond_wait(&changed, &lock);
  }
  if (state == BROKEN) {
    pthread_detach(thread); // it sleeps inside the virtual machine, for good
    *f = outcome;
    return GPUNVME_ERROR_JAVA;
  }
  int code = result;
  if (code < 0) {
    *f = outcome;
  }
  state = code < 0 ? IDLE : STARTED;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  pthread_mutex_lock(&lock);
  return code;
}

int shim_start(const start_options *options, failure *f) {
  if (shim_forked()) {
    return shim_fail(f, GPUNVME_ERROR_FORKED,
        "this process is a fork of the one that started gpunvme, and has none of its threads; call exec after fork, or fork before the "
        "first call");
  }
  if (shim_table() != NULL) {
    return GPUNVME_OK;
  }
  int code = GPUNVME_OK;
  pthread_mutex_lock(&lock);
  while (state == STARTING || state == ENDED) {
    pthread_cond_wait(&changed, &lock);
  }
  if (state == BROKEN) {
    *f = outcome;
    code = GPUNVME_ERROR_JAVA;
  } else if (state == IDLE) {
    code = start_and_wait(options, f);
  }
  pthread_mutex_unlock(&lock);
  return code;
}
